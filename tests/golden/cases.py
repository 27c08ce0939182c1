"""Degraded variants of the sample log, by name: what the golden outputs are computed from.

A case is a pure function of the sample log. Randomness comes from seeded generators, so the inputs are reproducible
from the sample log alone. Rows are 2 ms apart unless a case says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from golden.inputs import Inputs

import gait

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"

Case = Callable[[gait.Log], Inputs]
CASES: dict[str, Case] = {}

FR, FL, RR, RL = (slice(3 * leg, 3 * leg + 3) for leg in range(4))


@cache
def sample() -> gait.Log:
    return gait.open_log(SAMPLE)


def inputs_of(name: str) -> Inputs:
    """The inputs of a case."""
    return CASES[name](sample())


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def begin(log: gait.Log, seconds: float = 4.0, start: str = "truth", **load: Any) -> Inputs:
    """The first seconds of the log."""
    return Inputs(log.slice(None, seconds), start, **load)


# Starts


@case
def clean(log: gait.Log) -> Inputs:
    """The whole sample, from ground truth."""
    return Inputs(log)


@case
def start_gravity(log: gait.Log) -> Inputs:
    """Roll and pitch from the first sample."""
    return begin(log, start="gravity")


@case
def start_in_motion(log: gait.Log) -> Inputs:
    """From gravity at 5 s, at 1 m/s: the robot is not at rest."""
    return Inputs(log.slice(5.0, 9.0), "gravity")


@case
def start_blind(log: gait.Log) -> Inputs:
    """From gravity, with an IMU and a leg that say nothing for the first 20 ms."""
    inputs = begin(log, 2.0, start="gravity").put("accel", 0.0, 0.02, np.nan)
    return inputs.put("q", 0.0, 0.02, np.nan, RL)


# Time


@case
def lost_samples(log: gait.Log) -> Inputs:
    """5 % of the samples lost."""
    inputs = begin(log, 6.0)
    keep = np.random.default_rng(1).random(len(inputs)) >= 0.05
    keep[0] = True
    return inputs.keep(keep)


@case
def gap_short(log: gait.Log) -> Inputs:
    """0.3 s without samples."""
    return begin(log).cut(2.0, 2.3)


@case
def gap_long(log: gait.Log) -> Inputs:
    """3 s without samples."""
    return begin(log, 7.0).cut(2.0, 5.0)


@case
def clock_back_short(log: gait.Log) -> Inputs:
    """The clock is set back by 0.5 s: samples are refused until it has caught up."""
    inputs = begin(log)
    inputs.values["t"][inputs.rows(2.0, 4.0)] -= 0.5
    inputs.events.append(1249)
    return inputs


@case
def clock_back_long(log: gait.Log) -> Inputs:
    """The clock is set back by 2 s: a clock reset."""
    inputs = begin(log)
    inputs.values["t"][inputs.rows(2.5, 4.0)] -= 2.0
    return inputs


@case
def stamps_broken(log: gait.Log) -> Inputs:
    """Stamps repeat, are NaN, infinite, out of order, and as large as seconds since 1970."""
    inputs = begin(log, 3.0)
    t = inputs.values["t"]
    t[inputs.rows(0.5, 0.52)] = t[249]
    t[inputs.rows(1.0, 1.02)] = np.nan
    t[inputs.rows(1.2, 1.202)] = np.inf
    t[600], t[601] = t[601], t[600]
    t[inputs.rows(2.0, 3.0)] += 1.7e9
    return inputs


@case
def jitter(log: gait.Log) -> Inputs:
    """Stamps off by up to 0.3 ms: within the tolerance of the network's clock."""
    inputs = begin(log)
    inputs.values["t"][1:] += np.random.default_rng(2).uniform(-3e-4, 3e-4, len(inputs) - 1)
    return inputs


@case
def jitter_large(log: gait.Log) -> Inputs:
    """Stamps off by up to 0.9 ms: the network's samples are interpolated."""
    inputs = begin(log)
    inputs.values["t"][1:] += np.random.default_rng(3).uniform(-9e-4, 9e-4, len(inputs) - 1)
    return inputs


@case
def rate_200(log: gait.Log) -> Inputs:
    """200 Hz."""
    return Inputs(log.slice(None, 6.0).resample(200.0))


@case
def rate_400(log: gait.Log) -> Inputs:
    """400 Hz."""
    return Inputs(log.slice(None, 4.0).resample(400.0))


@case
def rate_1000(log: gait.Log) -> Inputs:
    """1000 Hz, interpolated."""
    return Inputs(log.slice(None, 3.0).resample(1000.0))


# IMU


@case
def nan_gyro(log: gait.Log) -> Inputs:
    """Gyro NaN for 0.02 s, then for 0.3 s, longer than the last good sample stands in."""
    inputs = begin(log).put("gyro", 1.0, 1.02, np.nan, slice(1, 2))
    return inputs.put("gyro", 2.0, 2.3, np.nan)


@case
def nan_accel(log: gait.Log) -> Inputs:
    """Accelerometer NaN for 0.08 s, then infinite for 0.5 s."""
    inputs = begin(log).put("accel", 1.2, 1.28, np.nan, slice(2, 3))
    return inputs.put("accel", 2.2, 2.7, np.inf)


@case
def saturated(log: gait.Log) -> Inputs:
    """Gyro, then accelerometer at the end of its range."""
    inputs = begin(log).put("gyro", 1.0, 1.04, 34.9, slice(0, 1))
    return inputs.put("accel", 2.0, 2.2, -157.0, slice(2, 3))


@case
def imu_spikes(log: gait.Log) -> Inputs:
    """Single samples within the range of the IMU, far from what is measured around them."""
    inputs = begin(log)
    rng = np.random.default_rng(4)
    for row in rng.integers(500, len(inputs) - 500, 8).tolist():
        inputs.values["gyro"][row] += rng.uniform(-20.0, 20.0, 3)
        inputs.values["accel"][row] += rng.uniform(-80.0, 80.0, 3)
        inputs.events.append(row)
    return inputs


@case
def noisy_imu(log: gait.Log) -> Inputs:
    """White noise and constant biases beyond those of the sample."""
    inputs = begin(log, 6.0)
    rng = np.random.default_rng(5)
    inputs.values["gyro"] += 0.02 + rng.normal(0.0, 0.05, (len(inputs), 3))
    inputs.values["accel"] += 0.2 + rng.normal(0.0, 0.5, (len(inputs), 3))
    return inputs


@case
def diverged_speed(log: gait.Log) -> Inputs:
    """All legs silent while the accelerometer reads 150 m/s^2 for 0.5 s: beyond the speed limit, then recovery."""
    inputs = begin(log, 5.0)
    for name in ("q", "dq"):
        inputs.put(name, 1.5, 2.0, np.nan)
    return inputs.put("accel", 1.5, 2.0, [150.0, 0.0, 9.81])


@case
def diverged_blind(log: gait.Log) -> Inputs:
    """No IMU and no legs for 12 s: the covariance grows, then recovery."""
    inputs = begin(log, 16.0)
    for name in ("gyro", "q"):
        inputs.put(name, 1.0, 13.0, np.nan)
    return inputs


# Joints


@case
def nan_q(log: gait.Log) -> Inputs:
    """One joint angle NaN for 0.02 s, then all of them for 0.3 s."""
    return begin(log).put("q", 1.0, 1.02, np.nan, slice(4, 5)).put("q", 2.0, 2.3, np.nan)


@case
def nan_dq(log: gait.Log) -> Inputs:
    """Joint velocities NaN: one for 0.04 s, then all of them for 0.6 s."""
    return begin(log).put("dq", 1.3, 1.34, np.nan, slice(7, 8)).put("dq", 2.2, 2.8, np.nan)


@case
def nan_tau(log: gait.Log) -> Inputs:
    """One torque NaN for 0.02 s, then all of them for 0.3 s."""
    return begin(log).put("tau", 1.0, 1.02, np.nan, slice(4, 5)).put("tau", 2.0, 2.3, np.nan)


@case
def nan_q_des(log: gait.Log) -> Inputs:
    """Targets of a leg NaN for 0.06 s, of all legs for 0.3 s."""
    return begin(log).put("q_des", 1.0, 1.06, np.nan, FL).put("q_des", 2.0, 2.3, np.nan)


@case
def nan_tau_and_q_des(log: gait.Log) -> Inputs:
    """Torques and targets of a leg, then of all legs, NaN for 0.3 s."""
    inputs = begin(log)
    for name in ("tau", "q_des"):
        inputs.put(name, 1.0, 1.3, np.nan, RR).put(name, 2.0, 2.3, np.nan)
    return inputs


@case
def joint_spikes(log: gait.Log) -> Inputs:
    """Angles beyond the stops and velocities beyond the limit, sample by sample."""
    inputs = begin(log)
    rng = np.random.default_rng(6)
    for row in rng.integers(500, len(inputs) - 500, 6).tolist():
        inputs.values["q"][row, rng.integers(12)] = 40.0
        inputs.values["dq"][row + 5, rng.integers(12)] = -1e5
        inputs.events.append(row)
    return inputs


@case
def dead_leg(log: gait.Log) -> Inputs:
    """A leg silent from 2 s on."""
    inputs = begin(log)
    for name in ("q", "dq", "tau"):
        inputs.put(name, 2.0, 4.0, np.nan, FR)
    return inputs


@case
def dead_leg_returns(log: gait.Log) -> Inputs:
    """A leg silent for 1 s."""
    inputs = begin(log)
    for name in ("q", "dq", "tau"):
        inputs.put(name, 1.5, 2.5, np.nan, RL)
    inputs.events.append(1499)
    return inputs


@case
def dead_legs(log: gait.Log) -> Inputs:
    """Two diagonal legs silent from the first sample on, a third one for 0.4 s."""
    inputs = begin(log, 3.0)
    for name in ("q", "dq"):
        inputs.put(name, 0.0, 3.0, np.nan, FR).put(name, 0.0, 3.0, np.nan, RL).put(name, 1.5, 1.9, np.nan, FL)
    return inputs


@case
def stuck_leg(log: gait.Log) -> Inputs:
    """Encoders of a leg without change for 0.6 s."""
    inputs = begin(log)
    for name in ("q", "dq"):
        inputs.put(name, 1.5, 2.1, inputs.values[name][750, FL], FL)
    return inputs


@case
def leg_flags(log: gait.Log) -> Inputs:
    """`leg_ok` False for a leg, for a second one beside it, and for all."""
    inputs = begin(log)
    inputs.leg_ok = np.ones((len(inputs), 4), dtype=np.bool_)
    inputs.leg_ok[inputs.rows(1.0, 2.0), 0] = False
    inputs.leg_ok[inputs.rows(1.5, 1.7), 3] = False
    inputs.leg_ok[inputs.rows(3.0, 3.3)] = False
    return inputs


# Inputs that are not there


@case
def no_tau(log: gait.Log) -> Inputs:
    """No torques."""
    return begin(log).leave_out("tau")


@case
def no_q_des(log: gait.Log) -> Inputs:
    """No joint targets."""
    return begin(log).leave_out("q_des")


@case
def no_tau_no_q_des(log: gait.Log) -> Inputs:
    """Neither torques nor targets; contact flags are left."""
    return begin(log).leave_out("tau", "q_des")


@case
def bare(log: gait.Log) -> Inputs:
    """IMU and encoders alone."""
    return begin(log).leave_out("tau", "q_des", "contact")


@case
def contact_flags(log: gait.Log) -> Inputs:
    """Contacts from flags although there are torques."""
    return begin(log, contact_from="contact")


@case
def foot_forces(log: gait.Log) -> Inputs:
    """Contacts from foot forces: 60 N where a foot is on the ground."""
    inputs = begin(log, contact_from="foot_force")
    inputs.values["foot_force"] = 60.0 * inputs.values["contact"]
    return inputs


@case
def other_robot(log: gait.Log) -> Inputs:
    """The same joints on a Go2: another kinematic chain."""
    return begin(log, robot="go2")
