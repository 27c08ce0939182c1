"""What a step costs, in multiply-adds, and how many numbers a network holds: counted from the architecture."""

from __future__ import annotations

import math

from gait.errors import GaitError
from gait.nets.architecture import Architecture, AttentionArchitecture, LegsArchitecture, NmnArchitecture
from gait.nets.shapes import NORMALISER, OUTPUTS, shapes_of


def multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step of the network as the paper draws it, in steady running.

    Each token is embedded and projected to its key and value once, when its sample arrives. Queries are constants.
    """
    if isinstance(architecture, NmnArchitecture):
        hidden = architecture.hidden
        recurrent = _gru(architecture.num_features, hidden)
        return recurrent + sum(_mlp(hidden, architecture.mlp, n) for n in (OUTPUTS, OUTPUTS, architecture.legs))
    if isinstance(architecture, LegsArchitecture):
        return _legs(architecture, shared_frames=False)
    a = _attention(architecture)
    attention = 2 * a.latents * _window(a) * a.attention_width
    project = a.latents * a.attention_width * a.width
    return _tokens(a, projections=2) + attention + project + _heads(a)


def self_attention_multiply_adds(architecture: Architecture) -> int:
    """The same with self-attention over the same tokens in the place of the latents.

    Every token asks every token, and the average answer goes to the same heads: with two heads of 32 it has as many
    numbers as two latents of 32.
    """
    a = _attention(architecture)
    return _tokens(a, projections=3) + 2 * _window(a) ** 2 * a.attention_width + _heads(a)


def folded_multiply_adds(architecture: Architecture) -> int:
    """Multiply-adds of one step with all that is linear folded: no less than what running costs."""
    if isinstance(architecture, NmnArchitecture):
        return multiply_adds(architecture)
    if isinstance(architecture, LegsArchitecture):
        return _legs(architecture, shared_frames=True)
    a = _attention(architecture)
    queries = a.latents * a.heads
    per_sample = sum(len(token.columns) for token in a.tokens) * queries
    pooled = queries * (sum(a.embeddings.values()) + len(a.tokens) + a.history)
    gates = 2 * 3 * a.hidden * (pooled + 6 + a.hidden)
    return per_sample + a.history * per_sample + gates + 2 * _mlp(a.hidden, a.mlp, OUTPUTS)


def parameters(architecture: Architecture) -> int:
    """Learned numbers, weights and offsets."""
    return sum(math.prod(shape) for name, shape in shapes_of(architecture).items() if name not in NORMALISER)


def _legs(a: LegsArchitecture, shared_frames: bool) -> int:
    """Of the network alone, without kinematics; what legs share in the frames is multiplied once, or for each leg."""
    own = a.frames * (a.token - 6) * a.hidden
    shared = a.frames * 6 * a.hidden
    outputs = 2 * OUTPUTS if a.correction else OUTPUTS
    attend = 3 * a.hidden * a.attention_width + 2 * a.legs * a.attention_width
    rest = a.hidden**2 + attend + (a.hidden + a.attention_width) * a.mlp + a.mlp * outputs
    return a.legs * (own + rest) + shared * (1 if shared_frames else a.legs)


def _attention(architecture: Architecture) -> AttentionArchitecture:
    if not isinstance(architecture, AttentionArchitecture):
        raise GaitError(f"network {architecture.kind} has no attention")
    return architecture


def _window(a: AttentionArchitecture) -> int:
    return a.history * len(a.tokens)


def _tokens(a: AttentionArchitecture, projections: int) -> int:
    embed = sum(len(token.columns) for token in a.tokens) * a.width
    return embed + projections * len(a.tokens) * a.width * a.attention_width


def _heads(a: AttentionArchitecture) -> int:
    return 2 * (_gru((a.latents + 2) * a.width, a.hidden) + _mlp(a.hidden, a.mlp, OUTPUTS))


def _gru(inputs: int, hidden: int) -> int:
    return 3 * hidden * (inputs + hidden)


def _mlp(inputs: int, width: int, outputs: int) -> int:
    return inputs * width + width * outputs
