"""Many robots at once as a torch module, for simulators that train policies: network and filter on their device.

estimator = gait.nets.TorchBatch("go1", 4096, "cuda", step_dt=0.005)
state = estimator.update(gyro, accel, q, dq, q_des)  # tensors (n, ...) on the device
observation = torch.cat([state.vel_b, state.ang_vel_b, state.gravity_b, ...], 1)
estimator.reset(done)  # flags (n,)

Each robot does what `gait.Batch` and the core do, to 1e-5. The equations are those of `gait.reference`, function by
function and name by name: `torch_filter`, `torch_chain`, `torch_legs`, `torch_network`, and here `velocity_aided`.
Consistency of the legs with the predicted state is watched as in core/monitor.c (`torch_monitor`), and noise and spikes
of the IMU and a robot at rest are found as there (`torch_sensors`).

Not covered are the checks for broken sensors, since simulators have none: ranges, units, saturation and a stuck IMU,
gravity that is not along the vertical, encoders that are stuck, lost or contradict their velocities (`leg_ok`, and the
second network of `gait` for a lost leg), torques that do not carry the robot, targets or torques that are missing for a
moment (weights without them are chosen once, by `targets`), jitter and gaps of the clock, and the words of health. A
robot whose sample is not finite keeps its state until one is. The methods `iekf`, `iekf-sr` and those written in Python
are not covered either: use `gait.Batch` or `gait.Estimator`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from gait.core_config import AT_REST, deviations
from gait.errors import GaitError
from gait.lie import rotation_from_quat
from gait.methods import DEFAULT, is_python
from gait.nets.architecture import LegsArchitecture
from gait.nets.choose import fitted, models_of
from gait.nets.model import Model
from gait.nets.schedule import FIRST, JITTER, WAIT, schedule
from gait.nets.torch_filter import BatchState, TorchFilter, base_state, constant, imu_state, level_rotation
from gait.nets.torch_legs import TorchMeasurement
from gait.nets.torch_lie import cross, product, square, turn, turn_back
from gait.nets.torch_lie import rotation_from_quat as rotations_from_quats
from gait.nets.torch_monitor import TorchMonitor
from gait.nets.torch_sensors import TorchSensors
from gait.nets.torch_velocity import TorchLegsVelocity, TorchNetworkVelocity, at_rest
from gait.parameters import BASELINES, LEG_INSTANT, LEGS_NOISE, Options, Prior, ProcessNoise
from gait.robot import Robot

LOST = replace(AT_REST, rotation=0.3, yaw=2.0, velocity=2.0, position=10.0)
"""As in core/estimator.c: what is known after a state left all bounds."""


class TorchBatch(nn.Module):
    """Estimators of n robots of one kind on one device; each does what `gait.Estimator` does."""

    R_bi: Tensor
    p_bi: Tensor
    prior_std: Tensor
    rest_std: Tensor
    lost_std: Tensor
    row: Tensor
    """Of the schedule, for the next sample (n,)."""
    align: Tensor
    """Whether the next sample gives roll and pitch (n,)."""
    last: Tensor
    """The sample before (F, n)."""
    safe_R: Tensor
    safe_p: Tensor

    def __init__(
        self,
        robot: str | Path | Robot,
        n: int,
        device: str | torch.device = "cpu",
        *,
        method: str | Path | Model = DEFAULT,
        step_dt: float | None = None,
        targets: bool = True,
        noise: ProcessNoise | None = None,
        prior: Prior | None = None,
        options: Options | None = None,
        precision: torch.dtype = torch.float64,
    ) -> None:
        """Make n estimators, each at rest.

        Args:
            robot: name of a robot, the path of its YAML file, or a `Robot`.
            n: how many.
            device: of the tensors.
            method: `gait-legs`, `gait`, `gait-flat`, `nmn`, or a model or the path of its file.
            step_dt: seconds between two calls of `update`; the network's period (2 ms) by default. The network is
                stepped at its own instants on interpolated samples, as the core does.
            targets: whether samples will have what the method reads beside IMU, q and dq (q_des, tau); if not, the
                method's weights without it are taken.
            noise: as for `gait.Estimator.load`, like the arguments that follow.
            prior: see there.
            options: see there.
            precision: of the filter and of the legs' kinematics; the network has single precision. With float64 states
                agree with the core to 1e-5.
        """
        super().__init__()
        self.robot = robot if isinstance(robot, Robot) else Robot.load(robot)
        model, self.method = _model_of(method, self.robot, targets)
        if n < 1:
            raise GaitError(f"a batch of {n} robots: give at least 1")
        if precision not in (torch.float32, torch.float64):
            raise GaitError(f"a filter in {precision}: give torch.float64 or torch.float32")
        period, options = 1.0 / model.rate, options or Options()
        self.n, self.step_dt, self.precision = n, period if step_dt is None else step_dt, precision
        if not 0.0 < self.step_dt <= options.max_gap:
            raise GaitError(f"step_dt is {self.step_dt:g} s: give seconds above 0 and up to {options.max_gap:g}")
        by_leg = isinstance(model.architecture, LegsArchitecture)
        noise = _at_rate(noise or (LEGS_NOISE if by_leg else ProcessNoise()), self.step_dt / period)
        self._targets = model.architecture.targets
        of_soles = by_leg and all(leg.foot.is_flat for leg in self.robot.legs)
        self.ekf = TorchFilter(n, noise, options, precision, of_soles)
        self.source: TorchLegsVelocity | TorchNetworkVelocity = (
            TorchLegsVelocity(model, self.robot, n, options, precision)
            if by_leg
            else TorchNetworkVelocity(model, self.robot, n, options, precision)
        )
        self.sensors = TorchSensors(self.robot.num_joints, n, self.step_dt, options, precision)
        self._add_schedule(period)
        self._add_state(n, 6 + (3 if self._targets else 2) * self.robot.num_joints, prior or Prior())
        self.monitor = TorchMonitor(n, self.R_bi, period, precision, self.robot.leg_length if by_leg else 0.0)
        self.to(_device_of(device))
        self.reset()

    def _add_state(self, n: int, numbers: int, prior: Prior) -> None:
        """What is remembered beside filter and network, and constants."""
        constants = {
            "R_bi": constant(rotation_from_quat(self.robot.imu_quat_wxyz)[..., None], self.precision),
            "p_bi": constant(self.robot.imu_position[:, None], self.precision),
            "prior_std": torch.tensor(deviations(prior), dtype=self.precision),
            "rest_std": torch.tensor(deviations(AT_REST), dtype=self.precision),
            "lost_std": torch.tensor(deviations(LOST), dtype=self.precision),
        }
        for name, value in constants.items():
            self.register_buffer(name, value, persistent=False)
        self.register_buffer("row", torch.full((n,), FIRST))
        self.register_buffer("align", torch.ones(n, dtype=torch.bool))
        self.register_buffer("last", torch.zeros(numbers, n, dtype=self.precision))
        self.register_buffer("safe_R", self.ekf.R.clone())
        self.register_buffer("safe_p", self.ekf.p.clone())

    def _add_schedule(self, period: float) -> None:
        """The pattern of samples and steps of the network, as tables on the device."""
        table = schedule(self.step_dt, period)
        for name, array in table._asdict().items():
            dtype = self.precision if array.dtype.kind == "f" else None
            self.register_buffer(f"table_{name}", torch.as_tensor(array, dtype=dtype), persistent=False)
        self._substeps = table.dt.shape[1]
        self._mixes = [bool((table.part[:, k] < 1.0).any()) for k in range(self._substeps)]
        self._rests = bool((table.rest > 0.0).any())

    table_dt: Tensor
    table_part: Tensor
    table_network_dt: Tensor
    table_steps: Tensor
    table_rest: Tensor
    table_following: Tensor

    def __len__(self) -> int:
        return self.n

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.row.device

    def forward(self, *sample: Tensor, **named: Tensor) -> BatchState:
        """As `update`."""
        return self.update(*sample, **named)

    @torch.no_grad()
    def update(
        self,
        gyro: Tensor,
        accel: Tensor,
        q: Tensor,
        dq: Tensor,
        q_des: Tensor | None = None,
        tau: Tensor | None = None,
    ) -> BatchState:
        """Take one sample of each robot, `step_dt` seconds after the last.

        Args:
            gyro: angular rate in IMU axes (n, 3), rad/s.
            accel: specific force in IMU axes (n, 3), m/s^2: +9.81 on z at rest.
            q: joint angles (n, J), rad, in the order of `robot.joint_names`.
            dq: joint velocities (n, J), rad/s.
            q_des: joint targets (n, J), rad.
            tau: joint torques (n, J), N m; `gait-legs` takes them, or `q_des` and the robot's gains.

        Returns:
            The states, in the precision of `gyro`. Nothing is copied from the device, and no gradient is kept.
        """
        given = {"gyro": gyro, "accel": accel, "q": q, "dq": dq, "q_des": q_des, "tau": tau}
        self._check(given, {"gyro": 3, "accel": 3})
        ready = {name: None if value is None else value.T.to(self.precision) for name, value in given.items()}
        x = self._sample(**ready)  # type: ignore[arg-type]
        finite = torch.isfinite(x.sum(0))
        x = torch.where(finite, x, self.last)
        x = self.sensors.admit(x, self.last, torch.where(self.row == FIRST, 0.0, self.step_dt), finite)
        imu = x[:3], x[3:6]
        row = self._start(*imu, finite)
        self._follow(row, imu, x)
        self.last = x
        self.row = torch.where(row == WAIT, self.row, self.table_following[row])
        flags = self.row != FIRST, self._recover()
        shown = self.monitor.open_disagreement(self.ekf)
        return base_state(self.ekf, imu[0], self.R_bi, self.p_bi, shown, flags, gyro.dtype)

    @torch.no_grad()
    def reset(
        self,
        robots: Tensor | None = None,
        *,
        quat_wb_wxyz: Tensor | None = None,
        vel_w: Tensor | None = None,
        pos_w: Tensor | None = None,
        gyro: Tensor | None = None,
    ) -> None:
        """Start robots again: all of them, or those whose flags are set (n,).

        Without a pose the next sample gives roll and pitch, if its specific force is that of a robot at rest (half to
        one and a half of gravity; otherwise a later one): heading, velocity and position are zero then.

        Args:
            robots: flags (n,), bool.
            quat_wb_wxyz: known orientations (n, 4), like the others with a row for every robot, reset or not.
            vel_w: known velocities of base_link (n, 3), m/s; zero by default.
            pos_w: known positions of base_link (n, 3), m; zero by default.
            gyro: angular rates as the gyro measures them (n, 3); zero by default.
        """
        given = {"vel_w": vel_w, "pos_w": pos_w, "gyro": gyro}
        if quat_wb_wxyz is None and any(value is not None for value in given.values()):
            raise GaitError("velocity, position and gyro belong to a known pose: give quat_wb_wxyz too")
        self._check({"quat_wb_wxyz": quat_wb_wxyz, **given}, {**dict.fromkeys(given, 3), "quat_wb_wxyz": 4})
        chosen = torch.ones_like(self.align) if robots is None else robots
        if chosen.shape != (self.n,) or chosen.dtype != torch.bool:
            raise GaitError(f"robots must be {self.n} flags, got a tensor of {chosen.dtype} and {tuple(chosen.shape)}")
        zeros = torch.zeros_like(self.ekf.v)
        v, p, w = (zeros if value is None else value.T.to(self.precision) for value in given.values())
        R_wb, std = self.ekf.eye.expand_as(self.ekf.R), self.rest_std
        if quat_wb_wxyz is not None:
            quat = quat_wb_wxyz.T.to(self.precision)
            R_wb, std = rotations_from_quats(quat / torch.linalg.vector_norm(quat, dim=0)), self.prior_std
        self.ekf.start(chosen, *imu_state(R_wb, v, p, w, self.R_bi, self.p_bi), std)
        self.align = torch.where(chosen, quat_wb_wxyz is None, self.align)
        self.row = torch.where(chosen, FIRST, self.row)
        self.last = torch.where(chosen, 0.0, self.last)
        self.sensors.reset(chosen)
        self.monitor.reset(chosen)
        self.ekf.adapted.reset(chosen)
        self._keep_pose(chosen)

    def _sample(
        self, gyro: Tensor, accel: Tensor, q: Tensor, dq: Tensor, q_des: Tensor | None, tau: Tensor | None
    ) -> Tensor:
        """A column of numbers for each robot (F, n)."""
        return torch.cat([gyro, accel, q, dq, *([self.source.load(q, dq, q_des, tau)] if self._targets else [])])

    def _start(self, gyro: Tensor, accel: Tensor, finite: Tensor) -> Tensor:
        """Begin with robots that have their first sample; returns the row of the schedule of each (n,)."""
        first = (self.row == FIRST) & finite
        share = torch.sqrt(square(accel)) / -self.ekf.options.gravity
        rest = (share > 0.5) & (share < 1.5)
        R_wb, zeros = level_rotation(turn(self.R_bi, accel)), torch.zeros_like(accel)
        state = imu_state(R_wb, zeros, zeros, zeros, self.R_bi, self.p_bi)
        self.ekf.start(first & self.align & rest, *state, self.rest_std)
        waits = ~finite | (first & self.align & ~rest)
        self.align = self.align & ~(first & rest)
        return torch.where(waits, WAIT, self.row)

    def _follow(self, row: Tensor, imu: tuple[Tensor, Tensor], x: Tensor) -> None:
        """Propagate to this sample, with a step of the network and a correction at each of its instants on the way."""
        begins = row == FIRST
        for k in range(self._substeps):
            active = self.table_steps[:, k][row]
            self._advance(imu, self.table_dt[:, k][row])
            between = torch.lerp(self.last, x, self.table_part[:, k][row]) if self._mixes[k] else x
            dt = self.table_network_dt[:, k][row]
            measured = self.source.measure(self.ekf, imu, between, dt, begins & active, active)
            self._correct(self._judge(measured, imu[0], active & ~begins), imu[0], active & ~begins)
        if self._rests:
            self._advance(imu, self.table_rest[row])

    def _advance(self, imu: tuple[Tensor, Tensor], dt: Tensor) -> None:
        """Carry the filter over part of the step to this sample (n,), s."""
        gyro, accel = self.sensors.more_noise(dt)
        ekf, adapted = self.ekf, self.ekf.adapted
        before = ekf.v
        ekf.propagate(*imu, dt, (gyro, accel + torch.clamp(adapted.density2 - ekf.noise.accel**2, min=0.0)))
        adapted.propagated(ekf.v - before, dt)

    def _judge(self, m: TorchMeasurement, gyro: Tensor, active: Tensor) -> TorchMeasurement:
        """Hold a measurement against the predicted state; for a robot at rest, that it has no velocity replaces it."""
        ekf, monitor = self.ekf, self.monitor
        still, chosen = monitor.still(self.sensors, ekf.options.gravity, active), active & m.informative
        velocity_w = ekf.v + turn(m.R_wb, m.consensus.delta)
        shares = torch.square(m.R_wb)
        variance_w = turn(shares, m.consensus.instant / ekf.adapted.factor)
        due = ekf.adapted.measure(velocity_w, variance_w, turn(shares, m.consensus.spread), m.R_wb, chosen & ~still)
        monitor.drift(ekf, due)
        monitor.consensus(ekf, m.consensus, m.R_wb, chosen & ~still)
        told = chosen & (m.gyro_bias_z_var > 0.0)
        monitor.rate(ekf, m.gyro_bias_z, LEG_INSTANT**2 * m.gyro_bias_z_var, told)
        return at_rest(m, turn(self.R_bi, gyro - ekf.gyro_bias)[2], still)

    def _correct(self, m: TorchMeasurement, gyro: Tensor, active: Tensor) -> None:
        """From base_link to the IMU: v_i = R_bi' (v_b + w_b x p_bi)."""
        ekf, R_bi, active = self.ekf, self.R_bi, active & m.informative
        w_b = turn(R_bi, gyro - ekf.gyro_bias)
        vel_i = turn_back(R_bi, m.vel_b + cross(w_b, self.p_bi))
        cov_i = product(R_bi.transpose(0, 1) * m.var_b, R_bi)
        told = m.gyro_bias_z_var > 0.0
        variance = torch.where(told, m.gyro_bias_z_var, 1.0)
        ekf.correct_gyro_bias(R_bi[2, :, 0], m.gyro_bias_z, variance, active & told)
        ekf.correct_velocity(vel_i, cov_i, active)

    def _recover(self) -> Tensor:
        """See that states are states; those that are not return to the last good pose. Returns which had to (n,)."""
        good = self.ekf.plausible
        self._keep_pose(good)
        self.ekf.start(~good, self.safe_R, torch.zeros_like(self.safe_p), self.safe_p, self.lost_std)
        self.ekf.limit_biases()
        return ~good

    def _keep_pose(self, chosen: Tensor) -> None:
        self.safe_R = torch.where(chosen, self.ekf.R, self.safe_R)
        self.safe_p = torch.where(chosen, self.ekf.p, self.safe_p)

    def _check(self, given: Mapping[str, Tensor | None], widths: Mapping[str, int]) -> None:
        """Raise for a tensor of the wrong shape or on another device."""
        for name, value in given.items():
            shape = (self.n, widths.get(name, self.robot.num_joints))
            if value is not None and value.shape != shape:
                raise GaitError(f"{name} must be a tensor of shape {shape}, got {tuple(value.shape)}")
            if value is not None and value.device != self.device:
                raise GaitError(f"{name} is on {value.device} and the batch on {self.device}: move one of them")


def _model_of(method: str | Path | Model, robot: Robot, targets: bool) -> tuple[Model, str]:
    """The model of a method, as it runs on a robot, and the name of the method."""
    if isinstance(method, str) and (method in BASELINES or is_python(method)):
        raise GaitError(f"method {method} has no network and does not run in torch: use gait.Batch or gait.Estimator")
    model, less, _, name = models_of(method, robot)
    return fitted(model if targets or less is None else less, robot), name


def _at_rate(noise: ProcessNoise, slow: float) -> ProcessNoise:
    """The noise of samples so many times as long as the network's: `imu_noise` of core/propagate.c."""
    return replace(noise, accel_share=noise.accel_share * slow**1.5) if slow > 1.0 + JITTER else noise


def _device_of(device: str | torch.device) -> torch.device:
    """The device of that name."""
    try:
        return torch.device(device)
    except RuntimeError:
        raise GaitError(f"unknown device '{device}': give cpu or cuda, and a method as method=...") from None
