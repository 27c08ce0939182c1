"""Faults of encoders, torques and joint targets."""

from __future__ import annotations

import numpy as np

from gait.arrays import AnyArray
from gait.bench.faults.fault import Fault, Inject, both, change, hide, noise, put, stuck
from gait.bench.faults.feed import Feed

THIGH = slice(4, 5)
"""Thigh of the second leg: a joint that moves."""
LEG, OPPOSITE = slice(0, 3), slice(9, 12)
GEAR = 6.33
"""Ratio of the hip and thigh drives of a Go1."""
FLICKER = 0.0002


def quantised(name: str, step: float) -> Inject:
    """Readings in steps."""
    return change(name, lambda x: np.round(x / step) * step)


def garbage(name: str, low: float, high: float) -> Inject:
    """Random numbers."""

    def inject(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
        if name in feed.values:
            shape = feed.values[name][rows].shape
            feed.put(name, rows, rng.uniform(low, high, shape))
        return feed

    return inject


def flicker(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """All encoders at rest, but one that changes by its last digit."""
    feed = both(stuck("q"), put("dq", 0.0))(feed, rows, rng)
    feed.values["q"][rows, THIGH] += FLICKER * rng.integers(0, 2, (rows.stop - rows.start, 1))
    return feed


def first_only(feed: Feed, rows: slice, rng: np.random.Generator) -> Feed:
    """Neither torques nor targets in the very first sample."""
    return hide("tau q_des")(feed, slice(0, 1), rng)


def lost(*legs: slice) -> Inject:
    """Everything that the drives of some legs report is NaN."""
    return both(*(put("q dq tau", np.nan, leg) for leg in legs))


def reversed_sign(values: AnyArray) -> AnyArray:
    """The other direction."""
    return -values


JOINT_FAULTS: tuple[Fault, ...] = (
    Fault("q-nan", "joint angles NaN", put("q", np.nan), flag="legs stale"),
    Fault("q-nan-joint", "one joint angle NaN", put("q", np.nan, THIGH), flag="leg stale"),
    Fault("q-inf", "joint angles infinite", put("q", np.inf), flag="legs stale"),
    Fault("dq-nan", "joint velocities NaN", put("dq", np.nan), flag="legs stale"),
    Fault("dq-nan-joint", "one joint velocity NaN", put("dq", np.nan, THIGH), flag="leg stale"),
    Fault("dq-inf", "joint velocities infinite", put("dq", np.inf), flag="legs stale"),
    Fault("tau-nan", "torques NaN", put("tau", np.nan)),
    Fault("tau-nan-joint", "one torque NaN", put("tau", np.nan, THIGH)),
    Fault("tau-inf", "torques infinite", put("tau", np.inf)),
    Fault("q_des-nan", "joint targets NaN", put("q_des", np.nan)),
    Fault("q_des-nan-joint", "one joint target NaN", put("q_des", np.nan, THIGH)),
    Fault("q_des-inf", "joint targets infinite", put("q_des", np.inf)),
    Fault("encoder-stuck", "one encoder stuck, its velocity zero", both(stuck("q", THIGH), put("dq", 0.0, THIGH)),
          flag="encoder stuck"),
    Fault("encoder-stuck-q", "one joint angle stuck, its velocity right", stuck("q", THIGH), flag="encoder stuck"),
    Fault("encoder-offset", "one encoder off by 0.05 rad", change("q", lambda x: x + 0.05, THIGH)),
    Fault("encoder-offset-on", "one encoder off by 0.05 rad, lasting", change("q", lambda x: x + 0.05, THIGH),
          lasts="on"),
    Fault("encoder-reversed", "one encoder with the other sign", change("q dq", reversed_sign, THIGH), lasts="whole",
          flag="leg out of range"),
    Fault("encoder-noisy", "one encoder with noise of 0.02 rad and 1 rad/s",
          both(noise("q", 0.02, THIGH), noise("dq", 1.0, THIGH))),
    Fault("encoder-flicker", "at rest, one encoder flickers by 0.0002 rad", flicker, course="stand", quiet=True),
    Fault("leg-lost", "one leg lost", lost(LEG), flag="leg stale"),
    Fault("legs-lost-2", "two diagonal legs lost", lost(LEG, OPPOSITE), flag="legs stale"),
    Fault("legs-lost-4", "all legs lost", lost(slice(None)), flag="legs stale, no measurement"),
    Fault("leg-stuck", "all encoders of a leg stuck", stuck("q dq tau", LEG), flag="leg stale"),
    Fault("legs-stuck-4", "all encoders stuck while the robot walks", stuck("q dq tau"), flag="legs stale"),
    Fault("dq-zero", "joint velocities zero", put("dq", 0.0), lasts="whole", flag="dq is zero while q moves"),
    Fault("dq-zero-2s", "joint velocities zero for 2 s", put("dq", 0.0), flag="dq is zero while q moves"),
    Fault("dq-noisy", "joint velocities with noise of 1 rad/s", noise("dq", 1.0)),
    Fault("dq-quantised", "joint velocities in steps of 0.5 rad/s", quantised("dq", 0.5), lasts="whole"),
    Fault("tau-zero", "torques zero", put("tau", 0.0), lasts="whole", flag="torques do not support the weight"),
    Fault("tau-gear", "torques divided by the gear ratio", change("tau", lambda x: x / GEAR), lasts="whole",
          flag="torques do not support the weight"),
    Fault("tau-half", "torques halved", change("tau", lambda x: x / 2.0), lasts="whole"),
    Fault("tau-double", "torques doubled", change("tau", lambda x: x * 2.0), lasts="whole"),
    Fault("tau-reversed", "torques with the other sign", change("tau", reversed_sign), lasts="whole",
          flag="torques do not support the weight"),
    Fault("tau-missing", "no torques", hide("tau"), lasts="whole"),
    Fault("tau-missing-2s", "no torques for 2 s", hide("tau")),
    Fault("q_des-missing", "no joint targets", hide("q_des"), lasts="whole"),
    Fault("q_des-missing-2s", "no joint targets for 2 s", hide("q_des")),
    Fault("q_des-frozen", "joint targets frozen", stuck("q_des")),
    Fault("q_des-garbage", "joint targets random within 3 rad", garbage("q_des", -3.0, 3.0)),
    Fault("tau-and-q_des-nan", "torques and joint targets NaN", put("tau q_des", np.nan),
          flag="torques and targets missing"),
    Fault("first-without-tau", "no torques and targets in the first sample", first_only, lasts="whole"),
)  # fmt: skip
