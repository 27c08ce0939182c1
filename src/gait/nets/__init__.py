"""The networks: from IMU and joint samples to body velocity and its standard deviation.

`architecture`, `cost`, `model` and `fold` need numpy and safetensors alone: they describe a network, count its cost,
keep it in a file and prepare it for running. `gait`, `flat` and `nmn` are the networks themselves, in torch, for
training.
"""

from gait.nets.architecture import Architecture, AttentionArchitecture, NmnArchitecture, architecture_of
from gait.nets.model import Model, load_model

__all__ = ["Architecture", "AttentionArchitecture", "Model", "NmnArchitecture", "architecture_of", "load_model"]
