"""A policy on a robot, fed by the estimator: `python examples/deploy_policy.py [POLICY.onnx [LOG]]`.

The twenty lines of `Deployment` are what to copy: joints by name, the estimator at 500 Hz, the policy at 50 Hz, and
what to do about `health`. Rows of a log stand in for the robot; without a policy a stand-in holds the pose. The
observation is that of the Go1 policy in MuJoCo Playground. A policy needs `pip install 'gait-estimator[sim]'`, the rest
needs no extras.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import gait
from gait import lie
from gait.arrays import Array
from gait.health import Health

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"
EVERY = 10  # samples to one step of the policy: 500 Hz to 50 Hz
ACTION_SCALE = 0.5  # rad of joint target for an action of 1
POSE = dict(zip(("hip", "thigh", "calf"), (0.1, 0.9, -1.8), strict=True))  # rad, with the hips turned outwards
STOP = Health.STARTING | Health.DIVERGED | Health.BAD_IMU
"""With these the velocity is of no use to a policy. Others, such as a slip, say what was left out of the estimate."""


class Deployment:
    """Sensors in, joint targets out."""

    def __init__(self, policy: Callable[[Array], Array], joint_names: Sequence[str]) -> None:
        self.policy, self.estimator = policy, gait.Estimator.load("go1")
        self.robot = self.estimator.robot
        # By name: yours[order] is in the order of the estimator, and of this policy.
        self.order = [list(joint_names).index(name) for name in self.robot.joint_names]
        side = [-1.0 if "L_hip" in name else 1.0 for name in self.robot.joint_names]
        self.pose = np.array([POSE[name.split("_")[1]] for name in self.robot.joint_names]) * side
        self.p_bi, self.R_bi = self.robot.imu_position, lie.rotation_from_quat(self.robot.imu_quat_wxyz)
        self.action, self.targets, self.count = np.zeros(12), self.pose.copy(), 0

    def step(self, t: float, gyro: Array, accel: Array, q: Array, dq: Array, tau: Array, command: Array) -> Array:
        """Call this for every sample, 500 times a second; the joint targets are in your order."""
        q, dq = q[self.order], dq[self.order]
        self.state = state = self.estimator.update(t, gyro, accel, q, dq, self.targets, tau[self.order])
        if self.count % EVERY == 0:
            if state.health.flags & STOP or not (state.valid.velocity and state.valid.attitude):
                self.action, self.targets = np.zeros(12), self.pose  # stand until the estimate is back
            else:
                omega_b = self.R_bi @ (gyro - state.gyro_bias)
                vel_i = self.R_bi.T @ (state.vel_b + np.cross(omega_b, self.p_bi))  # this policy reads it at the IMU
                gravity = -self.R_bi.T @ state.R_wb[2]  # (0, 0, -1) upright
                parts = [vel_i, gyro - state.gyro_bias, gravity, q - self.pose, dq, self.action, command]
                self.action = self.policy(np.concatenate(parts))
                self.targets = self.pose + ACTION_SCALE * self.action
        self.count += 1
        yours = np.empty(12)
        yours[self.order] = self.targets
        return yours


def load_policy(path: str) -> Callable[[Array], Array]:
    """An ONNX file as a function."""
    from gait.sim.policy.onnx_policy import OnnxPolicy

    policy = OnnxPolicy(Path(path))
    return lambda observation: policy(observation.astype(np.float32), policy.start())


def main(policy: str = "", path: str | Path = SAMPLE) -> None:
    log = gait.open_log(path)
    deployment = Deployment(load_policy(policy) if policy else lambda _: np.zeros(12), log.joint_names)
    report = ""
    for sample in log.rows():  # your robot: read the IMU and the joints here, and send the targets
        tau = np.zeros(12) if sample.tau is None else sample.tau
        targets = deployment.step(*sample[:5], tau, np.array([0.5, 0.0, 0.0]))
        health = str(deployment.state.health)
        if health != report:
            report = health
            print(f"{sample.t:7.3f} s   {report}")
    print(f"last targets    {np.array2string(targets, precision=2)} rad, in the order {log.joint_names[0]}, ...")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except gait.GaitError as error:
        sys.exit(str(error))
