"""What a step costs, in multiply-adds, and how many numbers a network holds: counted from the architecture."""

from __future__ import annotations

import math

from gait.errors import GaitError
from gait.nets.architecture import (
    NORMALISER,
    Architecture,
    AttentionArchitecture,
    LegsArchitecture,
    NmnArchitecture,
    shapes_of,
)


def multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step of the network as the paper draws it, in steady running.

    Each token is embedded and projected to its key and value once, when its sample arrives. Queries are constants.
    """
    if isinstance(architecture, NmnArchitecture):
        return _weights(architecture)
    if isinstance(architecture, LegsArchitecture):
        # Of the network alone, without kinematics: every leg has its own, and looks at every leg.
        looks = 2 * architecture.legs * architecture.attention_width
        return architecture.legs * (_weights(architecture) + looks)
    a = _attention(architecture)
    attention = 2 * a.latents * _window(a) * a.attention_width
    return _tokens(a, projections=2) + attention + a.latents * _weights(a, "out") + _weights(a, "velocity", "log_std")


def self_attention_multiply_adds(architecture: Architecture) -> int:
    """The same with self-attention over the same tokens in the place of the latents.

    Every token asks every token, and the average answer goes to the same heads: with two heads of 32 it has as many
    numbers as two latents of 32.
    """
    a = _attention(architecture)
    attention = 2 * _window(a) ** 2 * a.attention_width
    return _tokens(a, projections=3) + attention + _weights(a, "velocity", "log_std")


def folded_multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step with all that is linear folded: no less than what running costs."""
    if isinstance(architecture, NmnArchitecture):
        return multiply_adds(architecture)
    if isinstance(architecture, LegsArchitecture):
        # What legs share in the frames is multiplied once.
        shared = architecture.frames * (architecture.token - len(architecture.leg_columns)) * architecture.hidden
        return multiply_adds(architecture) - (architecture.legs - 1) * shared
    a = _attention(architecture)
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


def _attention(architecture: Architecture) -> AttentionArchitecture:
    if not isinstance(architecture, AttentionArchitecture):
        raise GaitError(f"network {architecture.kind} has no attention")
    return architecture


def _window(a: AttentionArchitecture) -> int:
    return a.history * len(a.tokens)


def _tokens(a: AttentionArchitecture, projections: int) -> int:
    """Every feature is embedded once, every token projected so many times."""
    return a.num_features * a.width + projections * len(a.tokens) * a.width * a.attention_width
