"""The estimate in the observation of a Gymnasium vector environment: `python examples/rl_gymnasium.py [STEPS]`.

A policy acts every 20 ms and the estimator wants the samples between, so each environment hands out those of its last
ten physics steps as `info`, and a wrapper gives them to `gait.Batch`. On a robot this is the loop that reads sensors.
Needs `pip install gymnasium` and the `sim` extra. Put your own environment in the place of `Go1Env`.
"""

import sys
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

import gait
from gait.sim.settings import EpisodeConfig
from gait.sim.world import build_model, stand_state

DT, SUBSTEPS, ACTION_SCALE = 0.002, 10, 0.25
FIELDS = ("gyro", "accel", "q", "dq", "q_des")


class Go1Env(gymnasium.Env):
    """A Go1 on flat ground; an action moves the joint targets, the reward is forward velocity."""

    def __init__(self) -> None:
        self.robot = gait.Robot.load("go1")
        self.model = build_model(self.robot, EpisodeConfig())
        self.model.opt.timestep = DT
        self.data, self.imu = mujoco.MjData(self.model), self.model.site("imu").id
        self.action_space = Box(-1.0, 1.0, (12,), np.float32)
        self.observation_space = Box(-np.inf, np.inf, (24,), np.float32)

    def _sample(self, q_des: np.ndarray) -> dict[str, np.ndarray]:
        """What sensors measure now: the site `imu` is where the IMU is, and looks where it looks."""
        mujoco.mj_rnePostConstraint(self.model, self.data)
        motion, force = np.zeros(6), np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_SITE, self.imu, motion, 1)
        mujoco.mj_objectAcceleration(self.model, self.data, mujoco.mjtObj.mjOBJ_SITE, self.imu, force, 1)
        q, dq = self.data.qpos[7:19].copy(), self.data.qvel[6:18].copy()
        return dict(zip(FIELDS, (motion[:3], force[3:], q, dq, q_des), strict=True))

    def _advance(self, q_des: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        samples = []
        for _ in range(SUBSTEPS):
            q, dq = self.data.qpos[7:19], self.data.qvel[6:18]
            self.data.ctrl[:] = self.robot.kp * (q_des - q) - self.robot.kd * dq
            mujoco.mj_step(self.model, self.data)
            mujoco.mj_forward(self.model, self.data)
            samples.append(self._sample(q_des))
        observation = np.concatenate([self.data.qpos[7:19] - self.robot.q_stand, 0.05 * self.data.qvel[6:18]])
        info = {name: np.array([sample[name] for sample in samples]) for name in FIELDS}
        R_wb = self.data.body(self.robot.base_link).xmat.reshape(3, 3)
        return observation.astype(np.float32), info | {"vel_b": R_wb.T @ self.data.qvel[:3]}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:19] = stand_state(self.robot)
        return self._advance(self.robot.q_stand)

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, info = self._advance(self.robot.q_stand + ACTION_SCALE * action)
        return observation, float(info["vel_b"][0]), bool(self.data.qpos[2] < 0.15), False, info


class EstimatedVelocity(gymnasium.vector.VectorWrapper):
    """Puts the estimated velocity and direction of gravity in front of every observation."""

    def __init__(self, env: gymnasium.vector.VectorEnv, robot: str = "go1") -> None:
        super().__init__(env)
        self.batch, self.t, self.over = gait.Batch(robot, env.num_envs), 0.0, np.ones(env.num_envs, dtype=bool)
        size = env.single_observation_space.shape[0] + 6
        self.single_observation_space = Box(-np.inf, np.inf, (size,), np.float32)
        self.observation_space = Box(-np.inf, np.inf, (env.num_envs, size), np.float32)

    def _with_estimate(self, observation: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        self.batch.reset(self.over)  # an episode that was over in the last step begins with these samples
        for k in range(info["gyro"].shape[1]):
            self.t += DT
            states = self.batch.update(self.t, **{name: info[name][:, k] for name in FIELDS})
        w, x, y, z = states.quat_wb_wxyz.T
        gravity_b = np.stack([2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1], axis=1)
        return np.concatenate([states.vel_b, gravity_b, observation], axis=1).astype(np.float32)

    def reset(self, **given: Any) -> tuple[np.ndarray, dict[str, Any]]:
        observation, info = self.env.reset(**given)
        self.over[:] = True
        observation, self.over = self._with_estimate(observation, info), np.zeros_like(self.over)
        return observation, info

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(actions)
        observation, self.over = self._with_estimate(observation, info), terminated | truncated
        return observation, reward, terminated, truncated, info


def main(steps: int = 100) -> None:
    env = EstimatedVelocity(gymnasium.vector.SyncVectorEnv([Go1Env] * 4))
    observation, info = env.reset(seed=0)
    env.action_space.seed(0)
    errors = []
    for _ in range(steps):
        observation, _, _, _, info = env.step(0.5 * env.action_space.sample())
        errors.append(np.linalg.norm(observation[:, :3] - info["vel_b"], axis=1))
    print(f"{len(env.batch)} robots, {steps} steps: velocity error median {np.median(errors):.3f} m/s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
