"""One step of a network: the paper's (`gait`), its baselines (`gait-flat`, `nmn`), and `gait-legs`.

Queries are constants and embeddings linear, so the attention's scores come from raw numbers and it pools raw numbers:
exactly what the network in PyTorch gives (`gait.nets`), with the normaliser folded into the weights as well.
"""

from __future__ import annotations

import numpy as np

from gait.arrays import Array, BoolArray
from gait.nets.architecture import HIDDEN, AttentionArchitecture, LegsArchitecture
from gait.nets.features import PER_LEG, SHARED
from gait.nets.model import Model
from gait.nets.parts import Parts, leg_parts, parts_of
from gait.reference.leg_velocity import VELOCITY


class NumpyNetwork:
    """`gait`, `gait-flat` or `nmn` from sample to sample."""

    def __init__(self, model: Model) -> None:
        a, self._parts = model.architecture, parts_of(model)
        self._log_std = a.log_std_min, a.log_std_max
        self._encoder = FoldedEncoder(a, self._parts) if isinstance(a, AttentionArchitecture) else None
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        grus, _, hidden = self._parts.recurrent_weight.shape
        self._h = np.zeros((grus, hidden))
        if self._encoder:
            self._encoder.reset()

    def step(self, features: Array, seen: BoolArray | None = None) -> tuple[Array, Array]:
        """Body velocity (3,), m/s, and the log of its standard deviation (3,), of one more sample.

        Args:
            features: raw numbers (F,) in the order of `gait.nets.features`.
            seen: tokens the attention may look at (C,), for as long as this sample is in the window; all by default.
        """
        p, x = self._parts, np.asarray(features, dtype=np.float64)
        if self._encoder:
            x = np.concatenate([self._encoder.step(x, seen), x[:6]])
        # G GRUs side by side: velocity and log-std have one each; nmn has one for both.
        reset_x, update_x, new_x = np.split(p.gate_weight @ x + p.gate_bias, 3, axis=1)  # (G, H) each
        reset_h, update_h, new_h = np.split(np.einsum("grh,gh->gr", p.recurrent_weight, self._h), 3, axis=1)
        reset, update = sigmoid(reset_x + reset_h), sigmoid(update_x + update_h)
        new = np.tanh(new_x + reset * (new_h + p.recurrent_bias))
        self._h = (1.0 - update) * new + update * self._h
        h = np.broadcast_to(self._h, (2, self._h.shape[1]))
        layer = relu(np.einsum("omh,oh->om", p.hidden_weight, h) + p.hidden_bias)  # (2, mlp)
        velocity, raw = np.einsum("oam,om->oa", p.output_weight, layer) + p.output_bias
        return velocity, bounded(raw, *self._log_std)

    def attention(self) -> Array:
        """Attention of the last step (Nt, C), oldest first, averaged over latents and heads."""
        return self._encoder.attention if self._encoder else np.zeros((0, 0))


class FoldedEncoder:
    """Cross-attention of constant queries over the tokens of the last Nt samples."""

    def __init__(self, a: AttentionArchitecture, p: Parts) -> None:
        self._score, self._encode, self._heads = p.score, p.encode, (a.latents, a.heads)
        self._columns = np.array(a.pooled_columns)  # (C, P - Nt)
        self._slots = np.repeat(np.eye(a.history), len(a.tokens), axis=0)  # (Nt C, Nt)
        self._shape = a.history, len(a.tokens)
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self._rows, self._seen = np.zeros((len(self._slots), self._columns.shape[1])), np.zeros(len(self._slots), bool)
        self.attention = np.zeros(self._shape)

    def step(self, x: Array, seen: BoolArray | None) -> Array:
        """The encoder's output (M D,) without its offset, which is in the gates."""
        tokens = len(self._columns)
        seen = np.ones(tokens, dtype=bool) if seen is None else seen
        new = np.where(seen[:, None], np.append(x, [0.0, 1.0])[self._columns], 0.0)  # what is hidden may be nan
        self._rows, self._seen = np.vstack([self._rows[tokens:], new]), np.append(self._seen[tokens:], seen)
        rows = np.hstack([self._rows, self._slots])  # (Nt C, P)
        shares = softmax(np.where(self._seen, self._score @ rows.T, HIDDEN))  # (Q, Nt C)
        pooled = (shares @ rows).reshape(*self._heads, -1)  # (M, heads, P)
        self.attention = shares.mean(0).reshape(self._shape)
        return np.einsum("hdp,mhp->md", self._encode, pooled).ravel()


class NumpyLegs:
    """`gait-legs` from sample to sample: the same network for every leg, which may look at the others."""

    def __init__(self, model: Model) -> None:
        a = model.architecture
        assert isinstance(a, LegsArchitecture)
        self._parts, self._attends = leg_parts(model), a.attention_width > 0
        self._lags, self._columns = list(a.lags), list(a.leg_columns)
        self._log_std = a.log_std_min, a.log_std_max
        self.reset()

    def reset(self) -> None:
        """As before the first sample."""
        self._past: tuple[Array, Array] | None = None
        self.attention = np.zeros((0, 0))

    def step(self, features: Array, leg_ok: BoolArray, known: BoolArray) -> tuple[Array, Array]:
        """Velocity of base_link (L, 3) as each leg measures it, and the log of its standard deviation (L, 3).

        Args:
            features: of `LegFeatures` (6 + 12 L,).
            leg_ok: legs in use (L,); the others look at nothing and are looked at by none.
            known: legs whose past samples are valid (L,); the past of the others is taken to equal this sample.
        """
        p, own = self._parts, features[SHARED:].reshape(-1, PER_LEG)
        base, legs = self._window(features[:SHARED], own, known)  # (frames, 6), (L, frames, own)
        x = relu(layer(p.shared, base.ravel()) + legs.reshape(len(legs), -1) @ p.own.T)
        x = relu(layer(p.hidden, x))  # (L, H)
        if self._attends:
            query, key, value = (np.einsum("hwi,li->hlw", w[..., 1:], x) + w[:, None, :, 0] for w in p.look)
            shares = softmax(np.where(leg_ok, query @ key.swapaxes(1, 2), HIDDEN))  # (heads, L, L)
            x = np.hstack([x, (shares @ value).swapaxes(0, 1).reshape(len(x), -1)])
            self.attention = shares.mean(0) * leg_ok[:, None]
        y = layer(p.output, relu(layer(p.mix, x)))  # (L, 3 or 4)
        velocity, log_std = own[:, VELOCITY].copy(), bounded(y[:, :3], *self._log_std)
        if y.shape[1] > 3:
            velocity[leg_ok, 2] += y[leg_ok, 3]
        return velocity, np.where(leg_ok[:, None], log_std, self._log_std[1])

    def _window(self, shared: Array, own: Array, known: BoolArray) -> tuple[Array, Array]:
        """The frames that the network reads, newest first."""
        depth = self._lags[-1] + 1
        bases, legs = (np.tile(shared, (depth, 1)), np.tile(own, (depth, 1, 1))) if self._past is None else self._past
        bases, legs = np.vstack([shared[None], bases[:-1]]), np.vstack([own[None], legs[:-1]])
        legs[:, ~known] = own[~known]
        self._past = bases, legs
        return bases[self._lags], legs[self._lags][:, :, self._columns].swapaxes(0, 1)


def layer(weights: Array, x: Array) -> Array:
    """W x + b, with b as the first column of the weights."""
    return x @ weights[:, 1:].T + weights[:, 0]


def relu(x: Array) -> Array:
    """The positive part."""
    return np.maximum(x, 0.0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


def softmax(scores: Array) -> Array:
    """Shares over the last axis; zeros where everything is hidden."""
    highest = scores.max(-1, keepdims=True)
    shares: Array = np.exp(scores - highest) * (highest > 0.1 * HIDDEN)
    shares /= np.maximum(shares.sum(-1, keepdims=True), 1.0)  # the highest alone gives 1
    return shares


def bounded(x: Array, low: float, high: float) -> Array:
    """A log-std within its bounds."""
    return low + (high - low) * sigmoid(x)
