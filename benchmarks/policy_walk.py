"""Does a policy walk here as it walks elsewhere? The G1's walk against a recorded one of the same policy.

    python benchmarks/policy_walk.py g1_policy.onnx g1_walk.npz

The recording lacks the commands, but holds all else that the policy read and the actions it answered with: the command
that explains an action is found by least squares. A residual near zero also shows that the observation is put together
as the recording's was. The same commands are then walked in our simulator, from the same pose.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sections import markdown

from gait.arrays import Array
from gait.lie import rotation_from_quat
from gait.rows import Row, rows_to_json
from gait.sim.episode import run_episode
from gait.sim.policy.observer import Observer, Seen
from gait.sim.policy.rig import Rig, rig_of
from gait.sim.settings import POLICY, SCENE, Command, EpisodeConfig, PolicyFiles

HOLD, RAMP = 3.0, 1.0
"""The recording changes its command every 3 s, and raises the first one from zero within 1 s."""
DEBOUNCE = 0.1
"""A foot that touches again within this time (s) has not made a step."""


@dataclass(frozen=True)
class Walk:
    """What is compared; world frame, (N, ...)."""

    t: Array
    contact: Array
    quat: Array
    vel_w: Array


def recovered_commands(record: dict[str, Array], rig: Rig) -> tuple[Array, float]:
    """Command (K, 3) of each control step of a recording, and the median residual of the actions."""
    actions = (record["q_des"][:, rig.order] - rig.pose[rig.order]) / rig.action_scale
    ticks = np.flatnonzero((np.diff(record["q_des"], axis=0) != 0.0).any(axis=1))
    commands, residuals = [], []
    for k, row in enumerate(ticks, start=1):

        def act(command: Array, row: int = row, k: int = k) -> Array:
            seen = Seen(
                q=record["q"][row], dq=record["dq"][row], R_wb=rotation_from_quat(record["base_quat"][row]),
                vel_w=record["base_vel_world"][row], omega_b=rig.R_bi @ record["gyro"][row], command=command,
                last_action=actions[row], time=k / rig.rate,
            )  # fmt: skip
            observer = Observer(rig.config, rig.pose[rig.order], rig.p_bi, rig.R_bi)
            return rig.policy(observer(seen), {})

        command = np.zeros(3)
        for _ in range(3):
            now = act(command)
            slopes = np.stack([(act(command + step) - now) / 0.01 for step in 0.01 * np.eye(3)], axis=1)
            command = command + np.linalg.lstsq(slopes, actions[row + 1] - now, rcond=None)[0]
        commands.append(command)
        residuals.append(float(np.abs(act(command) - actions[row + 1]).max()))
    return np.array(commands), float(np.median(residuals))


def schedule(commands: Array, rate: int) -> tuple[Command, ...]:
    """The recovered commands as a schedule: medians of each 3 s, since a single one is a little noisy."""
    held = round(HOLD * rate)
    parts = [np.median(commands[max(k, round(RAMP * rate)) : k + held], axis=0) for k in range(0, len(commands), held)]
    ramp = [Command(0.0)] + [Command(0.1 * i, *(i * 0.1 / RAMP * parts[0])) for i in range(1, round(RAMP / 0.1))]
    return (*ramp, Command(RAMP, *parts[0]), *(Command(HOLD * i, *part) for i, part in enumerate(parts) if i))


def figures(walk: Walk, commands: tuple[Command, ...]) -> dict[str, float]:
    """Step frequency of a foot, duty factor and the error of the commanded velocity."""
    rate = 1.0 / float(np.median(np.diff(walk.t)))
    steps = 0
    for foot in walk.contact.T:
        down = np.flatnonzero(foot[1:] & ~foot[:-1])
        lifted = np.flatnonzero(~foot[1:] & foot[:-1])
        last = [lifted[lifted < touch].max(initial=-(10**9)) for touch in down]
        steps += int(sum(touch - lift > DEBOUNCE * rate for touch, lift in zip(down, last, strict=True)))
    w, x, y, z = walk.quat.T
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    velocity = (walk.vel_w[:, 0] + 1j * walk.vel_w[:, 1]) * np.exp(-1j * yaw)
    at = np.searchsorted([command.start for command in commands], walk.t, side="right") - 1
    wanted = np.array([command.vx + 1j * command.vy for command in commands])[np.maximum(at, 0)]
    return {
        "step_frequency": steps / walk.contact.shape[1] / float(walk.t[-1] - walk.t[0]),
        "duty_factor": float(walk.contact.mean()),
        "tracking_error": float(np.sqrt(np.mean(np.abs(velocity - wanted) ** 2))),
    }


def compare(policy: Path, recording: Path, model: str = "g1") -> tuple[dict[str, tuple[float, float]], float]:
    """The figures of the recording and ours, and the residual of the recovered actions."""
    rig = rig_of(PolicyFiles(str(policy), model))
    with np.load(recording) as file:
        record = {name: file[name].astype(np.float64) for name in file.files if name not in ("meta", "contact")}
        contact = file["contact"]
    commands, residual = recovered_commands(record, rig)
    steps = schedule(commands, rig.rate)
    recorded = Walk(record["t"], contact, record["base_quat"], record["base_vel_world"])
    config = EpisodeConfig(
        policy=rig.files, gait=POLICY, terrain=SCENE, seconds=float(record["t"][-1]), settle=0.0,
        control_rate=rig.rate, commands=steps,
    )  # fmt: skip
    raw = run_episode(config, 0)
    ours = figures(Walk(raw.t, raw.contact, raw.quat_wb_wxyz, raw.vel_w), steps)
    theirs = figures(recorded, steps)
    return {name: (theirs[name], ours[name]) for name in theirs}, residual


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--model", default="g1", help="MJCF scene")
    parser.add_argument("--json", action="store_true", help="print rows for machines")
    options = parser.parse_args()
    found, residual = compare(options.policy, options.recording, options.model)
    units = {"step_frequency": "Hz", "duty_factor": "-", "tracking_error": "m/s"}
    print(f"largest residual of an action, median: {residual:.4f}", file=sys.stderr)
    if options.json:
        each = [
            (name, who, v) for name, both in found.items() for who, v in zip(("recorded", "ours"), both, strict=True)
        ]
        print(rows_to_json([Row(f"{name}.{who}", value, units[name]) for name, who, value in each]))
        return
    lines = [[f"{n}, {units[n]}", f"{a:.3f}", f"{b:.3f}", f"{100 * (b / a - 1):+.1f} %"] for n, (a, b) in found.items()]
    print(markdown(["", "recorded", "ours", "difference"], lines))


if __name__ == "__main__":
    main()
