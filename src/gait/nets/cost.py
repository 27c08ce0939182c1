"""What a step costs, in multiply-adds, and how many numbers a network holds: counted from the architecture."""

from __future__ import annotations

import math

from gait.errors import GaitError
from gait.nets.architecture import (
    NORMALISER,
    Architecture,
    AttentionArchitecture,
    LegsArchitecture,
    shapes_of,
)


def multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step of the network as the paper draws it, in steady running.

    Each token is embedded and projected to its key and value once, when its sample arrives. Queries are constants.
    """
    a = architecture
    if isinstance(a, LegsArchitecture):
        # Of the network alone, without kinematics: every leg has its own, and looks at every leg.
        return a.legs * (_weights(a) + 2 * a.legs * a.attention_width)
    if not isinstance(a, AttentionArchitecture):
        return _weights(a)
    attention = 2 * a.latents * a.history * len(a.tokens) * a.attention_width
    return _tokens(a, projections=2) + attention + a.latents * _weights(a, "out") + _weights(a, "velocity", "log_std")


def self_attention_multiply_adds(architecture: Architecture) -> int:
    """The same with self-attention over the same tokens in the place of the latents.

    Every token asks every token, and the average answer goes to the same heads: with two heads of 32 it has as many
    numbers as two latents of 32.
    """
    a = architecture
    if not isinstance(a, AttentionArchitecture):
        raise GaitError(f"network {a.kind} has no attention")
    attention = 2 * (a.history * len(a.tokens)) ** 2 * a.attention_width
    return _tokens(a, projections=3) + attention + _weights(a, "velocity", "log_std")


def folded_multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step with all that is linear folded: no less than what running costs."""
    a = architecture
    if isinstance(a, LegsArchitecture):
        # What legs share in the frames is multiplied once.
        return multiply_adds(a) - (a.legs - 1) * a.frames * (a.token - len(a.leg_columns)) * a.hidden
    if not isinstance(a, AttentionArchitecture):
        return multiply_adds(a)
    queries = a.latents * a.heads
    per_sample = a.num_features * queries
    pooled = queries * (sum(a.embeddings.values()) + len(a.tokens) + a.history)
    gates = 2 * 3 * a.hidden * (pooled + 6 + a.hidden)
    return per_sample + a.history * per_sample + gates + _weights(a, "velocity.mlp", "log_std.mlp")


def parameters(architecture: Architecture) -> int:
    """Learned numbers, weights and offsets."""
    return sum(math.prod(shape) for name, shape in shapes_of(architecture).items() if name not in NORMALISER)


def _weights(a: Architecture, *layers: str) -> int:
    """Numbers in the matrices of the layers whose names begin so, or of all layers."""
    matrices = {name: shape for name, shape in shapes_of(a).items() if ".weight" in name}
    return sum(math.prod(shape) for name, shape in matrices.items() if not layers or name.startswith(layers))


def _tokens(a: AttentionArchitecture, projections: int) -> int:
    """Every feature is embedded once, every token projected so many times."""
    return a.num_features * a.width + projections * len(a.tokens) * a.width * a.attention_width
