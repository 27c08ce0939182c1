"""What is known of the sensors of n robots beside their last values, in torch: the followers of core/imu_checks.c.

Level and noise of gyro and accelerometer, spikes, values that repeat, and whether joints move: what the noise of a step
and the detection of rest need. The checks for broken sensors are left out. Robots stand last, see `torch_lie`; what is
said of the IMU has the gyro first and then the accelerometer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn, unflatten

from gait.parameters import Options

LEVEL_TIME = 0.05
"""Time constant of the magnitude, s."""
LEAST_JUMP, SPIKE = (2.5, 45.0), (4.0, 120.0)
"""From one sample to the next, rad/s and m/s^2: a jump that joins the noise, and one that no impact makes."""
JUMP_RATIO, JUMP_TIME, SPIKE_SAMPLES = 8.0, 0.2, 2
"""Of a jump to the usual ones; time constant of those, s; samples in a row that may be spikes."""
NOISE_RATE, NOISE_MEDIAN = 15.0, 3.77
"""How fast the median of the second differences is followed, 1/s; what it is for white noise of unit variance."""
SOON, MOST_RISES = 8.0, 255.0
"""Samples in a row above the median after which it is followed faster, and how many are counted."""
SWING_RISE, SWING_FALL = 0.3, 3.0
"""How fast the motion of the body is followed, s."""
FIRST_NOISE, LEAST_NOISE = 1e-3, 1e-6
USUAL_NOISE = (0.03, 0.4)
"""Noise of a sample, rad/s and m/s^2, that walking makes; more is noise of the IMU."""
REPEATS = 0.01
"""Seconds for which an IMU that is slower than the samples repeats its values."""
DIFFERENCE_TIME, MEAN_TIME, JOINTS_MOVE = 0.006, 0.1, 0.1
"""Joints: time constants of velocities and of their mean squares, s; rad/s above which one moves."""
_IMU = ("raw", "before")
_EACH = ("level", "jumps", "noise", "same", "spike", "spikes", "samples", "rises", "swing")
_JOINTS = ("slow_q", "slow_dq", "moves", "turns")


class TorchSensors(nn.Module):
    """Followers of IMU and joints of n robots."""

    raw: Tensor
    """Last values of the IMU, and those before (2, 3, n)."""
    before: Tensor
    level: Tensor
    """Low-passed magnitude (2, n), and so are the next eight."""
    jumps: Tensor
    """Mean square of the change from sample to sample."""
    noise: Tensor
    """White noise of a sample."""
    same: Tensor
    """Seconds without change."""
    spike: Tensor
    """Size of the spike in this sample."""
    spikes: Tensor
    """Spikes in a row."""
    samples: Tensor
    """Up to 2 of those that second differences need."""
    rises: Tensor
    """Samples in a row above the noise."""
    swing: Tensor
    """Mean square of what the body's motion adds to the magnitude, lately."""
    slow_q: Tensor
    """Low-passed angles and velocities (J, n)."""
    slow_dq: Tensor
    moves: Tensor
    """Mean squares of velocities by differences, and as measured (J, n)."""
    turns: Tensor
    known: Tensor
    """Whether there was a sample (n,)."""
    least_jump2: Tensor
    spike2: Tensor
    usual_noise2: Tensor
    motion2: Tensor
    at_rest: Tensor

    def __init__(self, joints: int, n: int, step_dt: float, options: Options, dtype: torch.dtype) -> None:
        """Set up for n robots with a sample every `step_dt` seconds."""
        super().__init__()
        self.joints, self.step_dt = joints, step_dt
        shapes = {**dict.fromkeys(_IMU, (2, 3)), **dict.fromkeys(_EACH, (2,)), **dict.fromkeys(_JOINTS, (joints,))}
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(*shape, n, dtype=dtype))
        self.register_buffer("known", torch.zeros(n, dtype=torch.bool))
        pairs = {
            "least_jump2": LEAST_JUMP, "spike2": SPIKE, "usual_noise2": USUAL_NOISE,
            "motion2": (options.gap_rate, options.gap_accel),
        }  # fmt: skip
        for name, pair in pairs.items():
            self.register_buffer(name, torch.tensor(pair, dtype=dtype)[:, None] ** 2, persistent=False)
        at_rest = torch.tensor((0.0, -options.gravity), dtype=dtype)[:, None]
        self.register_buffer("at_rest", at_rest, persistent=False)

    def reset(self, chosen: Tensor) -> None:
        """Forget what is known of the chosen robots (n,)."""
        for name in (*_IMU, *_EACH, *_JOINTS):
            setattr(self, name, torch.where(chosen, 0.0, getattr(self, name)))
        self.known = self.known & ~chosen

    def admit(self, x: Tensor, last: Tensor, dt: Tensor, active: Tensor) -> Tensor:
        """Follow samples x (F, n), dt seconds (n,) after the ones before, of robots that are active (n,).

        Returns:
            The samples, a spike of the IMU replaced by the value `last` (F, n) has: its size joins the noise.
        """
        imu, kept = unflatten(x[:6], 0, (2, 3)), unflatten(last[:6], 0, (2, 3))
        repeated = self.known & (imu == self.raw).all(1)
        self._keep("same", active, torch.where(repeated, self.same + dt, 0.0))
        share = torch.where(self.known, dt / (LEVEL_TIME + dt), 1.0)
        level = self.level + share * (torch.linalg.vector_norm(imu, dim=1) - self.level)
        self._keep("level", active, level)
        far = self._jump(imu, kept, dt, active)
        self._follow_noise(imu, dt, active & ~far & ~repeated)
        off2 = torch.square(torch.linalg.vector_norm(imu, dim=1) - self.at_rest)
        time = torch.where(off2 > self.swing, SWING_RISE, SWING_FALL)
        self._keep("swing", active & ~far, self.swing + dt / (time + dt) * (off2 - self.swing))
        self._keep("raw", active, imu)
        self._follow_joints(x[6:], dt, active)
        self.known = self.known | active
        return torch.cat([torch.where((active & far)[:, None], kept, imu).flatten(0, 1), x[6:]])

    def _jump(self, imu: Tensor, kept: Tensor, dt: Tensor, active: Tensor) -> Tensor:
        """Whether a value is a spike (2, n); smaller jumps that stand out are kept in mind."""
        jump2 = torch.square(imu - kept).sum(1)
        usual = JUMP_RATIO**2 * self.jumps
        least = torch.maximum(self.least_jump2, usual)
        far = self.known & (self.spikes < SPIKE_SAMPLES) & (jump2 > torch.maximum(self.spike2, usual))
        self._keep("spike", active, torch.where(self.known & (jump2 > least), torch.sqrt(jump2), 0.0))
        self._keep("spikes", active, torch.where(far, self.spikes + 1.0, 0.0))
        jumps = self.jumps + dt / (JUMP_TIME + dt) * (torch.minimum(jump2, least) - self.jumps)
        self._keep("jumps", active & ~far, jumps)
        return far

    def _follow_noise(self, imu: Tensor, dt: Tensor, active: Tensor) -> None:
        """The median of the second differences, as the standard deviation of white noise; active is (2, n)."""
        now = torch.linalg.vector_norm(imu - 2.0 * self.raw + self.before, dim=1) / NOISE_MEDIAN
        rises = torch.where(now > self.noise, torch.clamp(self.rises + 1.0, max=MOST_RISES), 0.0)
        step = torch.clamp(NOISE_RATE * torch.where(rises > SOON, rises - SOON, 1.0) * dt, max=0.5)
        self._keep("rises", active, rises)
        moved = torch.clamp(self.noise * torch.where(now > self.noise, 1.0 + step, 1.0 - step), min=LEAST_NOISE)
        begun = torch.where(self.samples == 1.0, FIRST_NOISE, self.noise)
        self._keep("noise", active, torch.where(self.samples == 2.0, moved, begun))
        self._keep("samples", active, torch.clamp(self.samples + 1.0, max=2.0))
        self._keep("before", active[:, None], self.raw)

    def _follow_joints(self, x: Tensor, dt: Tensor, active: Tensor) -> None:
        """Velocities of the joints by differences of their angles and as measured, through the same low-pass."""
        q, dq = x[: self.joints], x[self.joints : 2 * self.joints]
        share, mean = dt / (DIFFERENCE_TIME + dt), dt / (MEAN_TIME + dt)
        slow_q = torch.where(self.known, self.slow_q + share * (q - self.slow_q), q)
        slow_dq = torch.where(self.known, self.slow_dq + share * (dq - self.slow_dq), dq)
        moves2 = torch.square((q - slow_q) / DIFFERENCE_TIME)
        self._keep("slow_q", active, slow_q)
        self._keep("slow_dq", active, slow_dq)
        first = ~self.known
        self._keep("moves", active, torch.where(first, 0.0, self.moves + mean * (moves2 - self.moves)))
        self._keep("turns", active, torch.where(first, 0.0, self.turns + mean * (torch.square(slow_dq) - self.turns)))

    def _keep(self, name: str, chosen: Tensor, value: Tensor) -> None:
        setattr(self, name, torch.where(chosen, value, getattr(self, name)))

    @property
    def joints_rest(self) -> Tensor:
        """Whether no joint moves (n,)."""
        return torch.maximum(self.moves, self.turns).amax(0) <= JOINTS_MOVE**2

    def more_noise(self, dt: Tensor) -> Tensor:
        """Squares of noise densities (2, n) that join those of gyro and accelerometer over dt seconds (n,)."""
        rough = torch.clamp(torch.square(self.noise) - self.usual_noise2, min=0.0) * self.step_dt
        time = torch.clamp(self.same - REPEATS, min=0.0)
        # A motion that lasts: its effect grows with the time for which it has not been measured.
        unknown = torch.square(time) - torch.square(torch.clamp(time - dt, min=0.0))
        repeated = unknown / torch.where(dt > 0.0, dt, 1.0)
        return rough + torch.maximum(self.motion2, self.swing) * repeated + torch.square(self.spike) * dt
