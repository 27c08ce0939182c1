"""One step of a network in plain numpy: the twin of `gait.runtime.network` where numba does not run."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.nets.architecture import AttentionArchitecture
from gait.nets.model import Model
from gait.nets.parts import Parts, parts_of
from gait.runtime.network_pack import Floats

_UNSEEN, _SEEN = np.float32(-1e30), np.float32(-1e29)


class NumpyNetwork:
    """A network that goes through a log one sample at a time, in single precision."""

    def __init__(self, model: Model) -> None:
        p = parts_of(model)
        a = model.architecture
        self._hidden = a.hidden
        self._gate_weight = _single(p.gate_weight)  # (G, 3 H, I)
        self._gate_bias = _single(p.gate_bias)
        self._recurrent_weight, self._recurrent_bias = _single(p.recurrent_weight), _single(p.recurrent_bias)
        self._hidden_weight, self._hidden_bias = _single(p.hidden_weight), _single(p.hidden_bias)
        self._output_weight, self._output_bias = _single(p.output_weight), _single(p.output_bias)
        self._low, self._span = np.float32(a.log_std_min), np.float32(a.log_std_max - a.log_std_min)
        self._encoder = _Encoder(a, p) if isinstance(a, AttentionArchitecture) else None
        self.reset()

    def reset(self) -> None:
        """Forget everything, as before the first sample of a log."""
        self._state = np.zeros((len(self._gate_weight), self._hidden, 1), dtype=np.float32)
        if self._encoder:
            self._encoder.reset()

    def step(self, features: Array | Floats, seen: BoolArray | None = None) -> tuple[Floats, Floats]:
        """Take one more sample.

        Args:
            features: raw numbers (F,) in the order of `gait.nets.features`.
            seen: tokens the attention may look at (C,), for as long as this sample is in the window; None means all.

        Returns:
            Body velocity (3,), m/s, and the log of its standard deviation (3,).
        """
        x = np.asarray(features, dtype=np.float32)
        if self._encoder:
            x = np.concatenate([self._encoder.step(x, seen), x[:6]])
        size, h = self._hidden, self._state[:, :, 0]
        gates = self._gate_weight @ x + self._gate_bias  # (G, 3 H)
        recurrent = (self._recurrent_weight @ self._state)[:, :, 0]
        both = _sigmoid(gates[:, : 2 * size] + recurrent[:, : 2 * size])
        reset, update = both[:, :size], both[:, size:]
        new = np.tanh(gates[:, 2 * size :] + reset * (recurrent[:, 2 * size :] + self._recurrent_bias))
        self._state = (new + update * (h - new))[:, :, None]
        # nmn has one GRU for both outputs.
        layer = np.maximum(
            (self._hidden_weight @ self._state)[:, :, 0] + self._hidden_bias, np.float32(0.0)
        )  # (2, mlp)
        outputs = (self._output_weight @ layer[:, :, None])[:, :, 0] + self._output_bias
        return outputs[0], self._low + self._span * _sigmoid(outputs[1])

    def attention(self) -> Array:
        """Where the last step looked, as `gait.runtime.network.attention`."""
        return self._encoder.attention() if self._encoder else np.zeros((0, 0))


class _Encoder:
    """From samples to the encoder's output, without the offset that is in the gates."""

    def __init__(self, a: AttentionArchitecture, p: Parts) -> None:
        assert p.score_weight is not None and p.score_bias is not None
        assert p.slot_bias is not None and p.encode is not None
        self._latents, self._heads, self._queries = a.latents, a.heads, a.latents * a.heads
        self._order = np.array(p.order)
        self._token_of = np.repeat(np.arange(len(p.tokens)), [count for _, count, _ in p.tokens])
        self._score_weight = _single(p.score_weight)
        self._score_bias = _single(p.score_bias)
        self._slot_bias = _single(p.slot_bias)[:, None]  # (Nt, 1, Q)
        self._encode = _single(p.encode.transpose(0, 2, 1).reshape(-1, a.width))  # (H P, D)
        # Pooled for each token: its raw numbers at the place of its embedding, and a one for its share.
        size = sum(a.embeddings.values())
        self._values_shape = (a.history, len(p.tokens), size + len(p.tokens))
        row = np.arange(len(p.tokens)) * self._values_shape[2]
        places = [place + i for _, count, place in p.tokens for i in range(count)]
        self._to = row[self._token_of] + np.array(places)
        self._share = row + size + np.arange(len(p.tokens))
        self.reset()

    def reset(self) -> None:
        history, tokens, _ = self._values_shape
        self._values = np.zeros(self._values_shape, dtype=np.float32)
        self._scores = np.full((history, tokens, self._queries), _UNSEEN)
        self._shares = np.zeros((self._queries, history * tokens), dtype=np.float32)

    def step(self, features: Floats, seen: BoolArray | None) -> Floats:
        history, tokens, _ = self._values_shape
        sample = features[self._order]
        if seen is not None:
            sample = np.where(seen[self._token_of], sample, np.float32(0.0))  # what is hidden may be nan
        scores = (self._score_weight @ sample + self._score_bias).reshape(tokens, -1)
        if seen is not None:
            scores[~seen] = _UNSEEN
        self._values[:-1], self._scores[:-1] = self._values[1:], self._scores[1:]
        self._scores[-1] = scores
        flat = self._values[-1].reshape(-1)
        flat[self._to] = sample
        flat[self._share] = 1.0
        window = (self._scores + self._slot_bias).reshape(history * tokens, -1)  # (Nt C, Q)
        highest = window.max(0)
        shares = np.exp(window - highest)
        shares *= np.where(highest > _SEEN, 1.0 / shares.sum(0), 0.0).astype(np.float32)
        self._shares = shares.T
        pooled = self._shares @ self._values.reshape(history * tokens, -1)  # (Q, E + C)
        by_slot = self._shares.reshape(self._queries, history, tokens).sum(2)
        joined = np.concatenate([pooled, by_slot], axis=1).reshape(self._latents, -1)  # (M, H P)
        encoded: Floats = (joined @ self._encode).ravel()
        return encoded

    def attention(self) -> Array:
        history, tokens, _ = self._values_shape
        mean: Array = self._shares.mean(0, dtype=np.float64).reshape(history, tokens)
        return mean


def _single(array: Array) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float32)


def _sigmoid(x: Floats) -> Floats:
    half = np.float32(0.5)
    y: Floats = half + half * np.tanh(half * x)
    return y
