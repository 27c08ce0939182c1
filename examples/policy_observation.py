"""Base velocity for a locomotion policy, inside a control loop: `python examples/policy_observation.py [LOG]`.

Rows of a log stand in for the robot. In every cycle the estimator takes one sample, and its state becomes part of what
a policy sees, here the 48 numbers that policies trained with legged_gym expect. Needs no extras.
"""

import sys
import time
from pathlib import Path

import numpy as np

import gait
from gait import lie
from gait.arrays import Array
from gait.health import Health

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"
PERIOD = 0.002  # s, a loop at 500 Hz
ACTION_SCALE = 0.25  # rad of joint target for an action of 1
DO_NOT_WALK = Health.STARTING | Health.DIVERGED
"""With these the velocity is of no use; other reports say what was left out of it."""


class Observer:
    """Makes the observation of a policy from sensors alone."""

    def __init__(self, robot: str = "go1") -> None:
        self.estimator = gait.Estimator.load(robot)
        self.robot = self.estimator.robot
        self.R_bi = lie.rotation_from_quat(self.robot.imu_quat_wxyz)  # IMU axes to body axes

    def __call__(self, sample: gait.Sample, command: Array, last_action: Array) -> tuple[Array, gait.State]:
        state = self.estimator.update(sample)
        observation = np.concatenate(
            [
                state.vel_b * 2.0,  # 3, what the robot has no sensor for
                self.R_bi @ (sample.gyro - state.gyro_bias) * 0.25,  # 3
                -state.R_wb[2],  # 3, which way is down, in the body frame
                command * [2.0, 2.0, 0.25],  # 3, forward, left, turn
                sample.q - self.robot.q_stand,  # 12, in the order of robot.joint_names
                sample.dq * 0.05,  # 12
                last_action,  # 12
            ]
        )
        return observation, state


def main(path: str | Path = SAMPLE) -> None:
    log = gait.open_log(path).reorder("go1")
    observer = Observer("go1")
    command, action = np.array([0.5, 0.0, 0.0]), np.zeros(12)
    seconds, report = [], ""
    for sample in log.rows():  # your robot: read the IMU and the joints here
        start = time.perf_counter()
        observation, state = observer(sample, command, action)
        seconds.append(time.perf_counter() - start)
        if str(state.health) != report:
            report = str(state.health)
            print(f"{state.t:7.3f} s   {report}")
        if state.health.flags & DO_NOT_WALK:
            continue  # your robot: stand, or lie down
        # Your robot: action = policy(observation), then send q_stand + ACTION_SCALE * action.
        if sample.q_des is not None:
            action = (sample.q_des - observer.robot.q_stand) / ACTION_SCALE

    print(f"observation     {observation.size} numbers, the first are {np.array2string(observation[:9], precision=2)}")
    print(f"velocity        {np.array2string(state.vel_b, precision=3)} +- {np.max(state.vel_b_std):.3f} m/s")
    if log.has_truth:
        print(f"the truth       {np.array2string(log.vel_b[-1], precision=3)} m/s")
    median, slow = np.percentile(np.array(seconds) * 1e6, (50, 99))
    print(f"time a cycle    median {median:.0f} us, 99 % below {slow:.0f} us, of {PERIOD * 1e6:.0f} us that there are")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except gait.GaitError as error:
        sys.exit(str(error))
