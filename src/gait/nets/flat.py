"""`gait-flat`, the paper's "w/o IL token": one token for each kind of measurement, legs mixed; else as in `gait`."""

from __future__ import annotations

from gait.nets.gait import GaitNet


class FlatNet(GaitNet):
    """Five tokens: gyro, accelerometer, all joint angles, all joint velocities, all tracking errors.

    The tokens come from the architecture (`AttentionArchitecture.tokens`); the encoder and the heads are the same code,
    so that a difference in a result is the tokens'.
    """
