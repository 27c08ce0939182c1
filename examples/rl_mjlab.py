"""The estimate as an observation term of mjlab: `python examples/rl_mjlab.py`, after `pip install mjlab`."""

import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.managers.metrics_manager import MetricsTermCfg
from mjlab.managers.observation_manager import ObservationTermCfg
from mjlab.tasks.velocity.config.go1.env_cfgs import unitree_go1_flat_env_cfg

from gait.nets import TorchBatch
from gait.parameters import Options


class EstimatedVelocity:  # an observation term with a memory: mjlab makes it, calls it and resets it
    def __init__(self, cfg, env):
        exact = Options(joint_delay=0.0)  # joints are read when the IMU is
        self.batch = TorchBatch("go1", env.num_envs, env.device, step_dt=env.physics_dt, options=exact)
        self.scene, self.data, names = env.scene, env.scene["robot"].data, env.scene["robot"].joint_names
        self.order = torch.tensor([names.index(name) for name in self.batch.robot.joint_names], device=env.device)
        self.joints = lambda: (self.data.joint_pos[:, self.order], self.data.joint_vel[:, self.order])
        self.vel_b, self.last, env.estimate = torch.zeros(env.num_envs, 3, device=env.device), self.joints(), self

    def sample(self):  # after a physics step MuJoCo's sensors are those of its begin, and so are the joints kept here
        gyro, accel = self.scene["robot/imu_ang_vel"].data, self.scene["robot/imu_lin_acc"].data
        state = self.batch.update(gyro, accel, *self.last, tau=self.data.qfrc_actuator[:, self.order])
        self.vel_b, self.last = state.vel_b, self.joints()
        return (self.vel_b - self.data.root_link_lin_vel_b).norm(dim=1)  # the metric: error of the estimate, m/s

    def __call__(self, env):
        return self.vel_b

    def reset(self, env_ids):
        self.batch.reset(torch.isin(torch.arange(len(self.batch), device=self.vel_b.device), env_ids))
        self.last = self.joints()


cfg = unitree_go1_flat_env_cfg()
cfg.scene.num_envs = 16  # 4096 and more to train
cfg.observations["actor"].terms["base_lin_vel"] = ObservationTermCfg(func=EstimatedVelocity)
cfg.metrics["velocity_error"] = MetricsTermCfg(func=lambda env: env.estimate.sample(), per_substep=True)
env = ManagerBasedRlEnv(cfg, device="cuda" if torch.cuda.is_available() else "cpu")
