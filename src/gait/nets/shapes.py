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
        shapes |= {f"embed.{name}.weight": (a.width, count), f"embed.{name}.bias": (a.width,)}
    shapes |= {
        "token_position": (len(a.tokens), a.width),
        "slot_position": (a.history, a.width),
        "latents": (a.latents, a.width),
        "out.weight": (a.width, a.attention_width),
        "out.bias": (a.width,),
    }
    shapes |= {f"{name}.weight": (a.attention_width, a.width) for name in ("query", "key", "value")}
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
    gates = 3 * hidden
    return {
        f"{name}.weight_ih_l0": (gates, inputs),
        f"{name}.weight_hh_l0": (gates, hidden),
        f"{name}.bias_ih_l0": (gates,),
        f"{name}.bias_hh_l0": (gates,),
    }


def _mlp(name: str, inputs: int, width: int, outputs: int) -> Shapes:
    return {
        f"{name}.hidden.weight": (width, inputs),
        f"{name}.hidden.bias": (width,),
        f"{name}.output.weight": (outputs, width),
        f"{name}.output.bias": (outputs,),
    }
