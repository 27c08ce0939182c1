"""Name and shape of every array of a network, from its architecture: what a model file must hold."""

from __future__ import annotations

from gait.nets.architecture import Architecture, AttentionArchitecture, LegsArchitecture

Shapes = dict[str, tuple[int, ...]]

OUTPUTS = 3
"""Axes of velocity and of log-std."""
NORMALISER = ("mean", "std")
"""Arrays that are measured on the data, not learned."""


def shapes_of(architecture: Architecture) -> Shapes:
    """The arrays of a network by name."""
    a = architecture
    if isinstance(a, LegsArchitecture):
        return _legs(a)
    shapes: Shapes = dict.fromkeys(NORMALISER, (a.num_features,))
    if not isinstance(a, AttentionArchitecture):
        shapes |= _gru("gru", a.num_features, a.hidden)
        for name, outputs in (("velocity", OUTPUTS), ("log_std", OUTPUTS), ("contact", a.legs)):
            shapes |= _mlp(name, a.hidden, a.mlp, outputs)
        return shapes
    for name, count in a.embeddings.items():
        shapes |= _linear(f"embed.{name}", count, a.width)
    shapes |= {
        "token_position": (len(a.tokens), a.width),
        "slot_position": (a.history, a.width),
        "latents": (a.latents, a.width),
        **{f"{name}.weight": (a.attention_width, a.width) for name in ("query", "key", "value")},
        **_linear("out", a.attention_width, a.width),
    }
    for name in ("velocity", "log_std"):
        shapes |= _gru(f"{name}.gru", (a.latents + 2) * a.width, a.hidden)
        shapes |= _mlp(f"{name}.mlp", a.hidden, a.mlp, OUTPUTS)
    return shapes


def _legs(a: LegsArchitecture) -> Shapes:
    shapes: Shapes = dict.fromkeys(NORMALISER, (a.token,))
    shapes |= _linear("frames", a.frames * a.token, a.hidden) | _linear("hidden", a.hidden, a.hidden)
    if a.attention_width:
        for name in ("query", "key", "value"):
            shapes |= _linear(name, a.hidden, a.attention_width)
    shapes |= _linear("mix", a.hidden + a.attention_width, a.mlp)
    return shapes | _linear("output", a.mlp, 2 * OUTPUTS if a.correction else OUTPUTS)


def _linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _gru(name: str, inputs: int, hidden: int) -> Shapes:
    shapes: Shapes = {}
    for part, count in (("ih", inputs), ("hh", hidden)):
        shapes |= {f"{name}.weight_{part}_l0": (3 * hidden, count), f"{name}.bias_{part}_l0": (3 * hidden,)}
    return shapes


def _mlp(name: str, inputs: int, width: int, outputs: int) -> Shapes:
    return _linear(f"{name}.hidden", inputs, width) | _linear(f"{name}.output", width, outputs)
