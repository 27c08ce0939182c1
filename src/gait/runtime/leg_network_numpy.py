"""One step of `gait-legs` in plain numpy: the twin of `gait.runtime.leg_network` where numba does not run."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_features import PER_LEG, SHARED, VELOCITY
from gait.nets.model import Model
from gait.runtime.leg_pack import leg_parts
from gait.runtime.network_pack import Floats

_ZERO = np.float32(0.0)


class NumpyLegs:
    """`gait-legs` that goes through a log one sample at a time, in single precision."""

    def __init__(self, model: Model) -> None:
        a = model.architecture
        assert isinstance(a, LegsArchitecture)
        self._legs, self._lags, self._heads = a.legs, np.array(a.lags), a.heads if a.attention_width else 0
        self._columns = list(a.leg_columns)
        self._shared, self._own, self._hidden, self._look, self._mix, self._output = (
            np.ascontiguousarray(part, dtype=np.float32) for part in leg_parts(model)
        )
        self._low, self._span = np.float32(a.log_std_min), np.float32(a.log_std_max - a.log_std_min)
        self.reset()

    def reset(self) -> None:
        """Forget everything, as before the first sample of a log."""
        self._past: Floats | None = None
        self._shares = np.zeros((self._heads, self._legs, self._legs))

    def step(self, features: Array, seen: BoolArray, before: BoolArray) -> Floats:
        """Take one more sample: velocity and log-std of each leg (L, 6).

        Args:
            features: of `gait.nets.leg_features` (6 + 12 L,).
            seen: legs that can be used (L,).
            before: legs whose last samples are true (L,).
        """
        sample = np.asarray(features, dtype=np.float32)
        if self._past is None:
            self._past = np.tile(sample, (self._lags[-1] + 1, 1))  # newest first
        self._past[1:] = self._past[:-1].copy()
        self._past[0] = sample
        past = self._past[:, SHARED:].reshape(-1, self._legs, PER_LEG)  # a view
        past[:, ~np.asarray(before)] = past[0, ~np.asarray(before)]
        window = self._past[self._lags]
        base = _layer(self._shared, window[:, :SHARED].ravel())
        own = past[self._lags][:, :, self._columns].swapaxes(0, 1).reshape(self._legs, -1)
        x = _relu(_layer(self._hidden, _relu(base + own @ self._own.T)))  # (L, H)
        if self._heads:
            query, key, value = (
                (x @ look[..., 1:].swapaxes(1, 2) + look[:, None, :, 0]) for look in self._look
            )  # (heads, L, head_width)
            scores = np.where(seen, query @ key.swapaxes(1, 2), np.float32(-1e30))
            shares = np.exp(scores - scores.max(2, keepdims=True))
            shares /= shares.sum(2, keepdims=True)
            self._shares = shares * np.asarray(seen)[:, None]
            x = np.concatenate([x, (shares @ value).swapaxes(0, 1).reshape(self._legs, -1)], axis=1)
        y = _layer(self._output, _relu(_layer(self._mix, x)))  # (L, 3 or 6)
        half = np.float32(0.5)
        unsure = np.where(np.asarray(seen)[:, None], half + half * np.tanh(half * y[:, :3]), np.float32(1.0))
        out = np.zeros((self._legs, 6), dtype=np.float32)
        out[:, :3] = past[0, :, VELOCITY : VELOCITY + 3]
        out[:, 3:] = self._low + self._span * unsure
        if y.shape[1] > 3:
            out[seen, :3] += y[seen, 3:]
        return out

    def attention(self) -> Array:
        """How much each leg looked at each other in the last step (L, L), averaged over heads."""
        mean: Array = self._shares.mean(0, dtype=np.float64) if self._heads else np.zeros((0, 0))
        return mean


def _layer(layer: Floats, x: Floats) -> Floats:
    y: Floats = x @ layer[:, 1:].T + layer[:, 0]
    return y


def _relu(x: Floats) -> Floats:
    return np.maximum(x, _ZERO)
