"""What a network is made of, in numbers: enough to build it, to count its cost and to read its file.

`shapes_of` gives name and shape of every array: what a model file must hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gait.documents import shown
from gait.errors import GaitError

JOINTS = 3
"""Joints of a leg."""
OUTPUTS = 3
"""Axes of velocity and of log-std."""
HIDDEN = -1e30
"""Score of what must not be seen. Finite, so that a window with nothing to see pools evenly instead of giving nan."""
NORMALISER = ("mean", "std")
"""Arrays that are measured on the data, not learned."""
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Token:
    """One token of the attention."""

    name: str
    embedding: str
    """Which linear layer embeds it; tokens may share one."""
    columns: tuple[int, ...]
    """Where its numbers stand in the feature vector."""


@dataclass(frozen=True)
class Architecture:
    """What all networks have.

    Features of a step: gyro (3), accel (3), then q, dq and e = q_des - q, each leg by leg (3 a leg).
    """

    kind: str
    """Name of the network: gait, gait-flat or nmn."""
    legs: int = 4
    """Legs of three joints each."""
    targets: bool = True
    """Whether e is among the features; without it the network runs on logs that have no joint targets."""
    hidden: int = 64
    """Width of a GRU."""
    mlp: int = 64
    """Width of the one hidden layer between a GRU and an output."""
    log_std_min: float = -7.0
    """The predicted log-std cannot go below: 0.9 mm/s, a fifth of what trot reaches on clean data."""
    log_std_max: float = 2.0
    """The predicted log-std cannot go above: 7.4 m/s, faster than the robot runs."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            least = 0 if field.name == "head_width" else 1
            if field.type == "int" and not (whole and value >= least):
                raise GaitError(f"architecture {field.name} is {shown(value)}: give a whole number of at least {least}")
        if not self.log_std_min < self.log_std_max:
            raise GaitError("architecture log_std_min must lie below log_std_max")

    @property
    def joint_features(self) -> tuple[str, ...]:
        """The features that every joint has, in order."""
        return ("q", "dq", "e") if self.targets else ("q", "dq")

    @property
    def num_features(self) -> int:
        """Numbers in the feature vector of a step."""
        return 6 + len(self.joint_features) * JOINTS * self.legs

    @property
    def inputs(self) -> tuple[str, ...]:
        """Fields of a Log that the network reads."""
        target = "tau" if self.kind == "gait-legs" else "q_des"
        return ("gyro", "accel", "q", "dq", *([target] if self.targets else []))

    def columns(self, feature: str, leg: int | None = None) -> tuple[int, ...]:
        """Where a feature stands in the feature vector; of one leg only if `leg` is given."""
        if feature in ("gyro", "accel"):
            start = 0 if feature == "gyro" else 3
            return tuple(range(start, start + 3))
        start = 6 + self.joint_features.index(feature) * JOINTS * self.legs
        first, count = (0, self.legs) if leg is None else (leg, 1)
        return tuple(range(start + JOINTS * first, start + JOINTS * (first + count)))


@dataclass(frozen=True)
class AttentionArchitecture(Architecture):
    """`gait` and `gait-flat`: tokens, one cross-attention layer, two recurrent heads."""

    kind: str = "gait"
    width: int = 32
    """D: numbers in a token."""
    history: int = 7
    """Nt: steps in the window of the attention, the present one among them."""
    latents: int = 2
    """M: learnable queries."""
    heads: int = 2
    """Attention heads."""
    head_width: int = 32
    """Numbers in a query, key or value of one head."""

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of a step: the two inertial ones, then one for each leg, or for each kind of joint feature."""
        inertial = tuple(Token(name, name, self.columns(name)) for name in ("gyro", "accel"))
        if self.kind == "gait-flat":
            return inertial + tuple(Token(name, name, self.columns(name)) for name in self.joint_features)
        legs = (tuple(c for name in self.joint_features for c in self.columns(name, i)) for i in range(self.legs))
        return inertial + tuple(Token(f"leg{i}", "leg", columns) for i, columns in enumerate(legs))

    @property
    def embeddings(self) -> dict[str, int]:
        """The linear layers that embed tokens, each with the numbers it takes."""
        return {token.embedding: len(token.columns) for token in self.tokens}

    def places(self, token: Token) -> tuple[int, ...]:
        """Where a token's numbers are gathered when raw numbers are pooled: tokens of one embedding share a place."""
        names = list(self.embeddings)
        start = sum(self.embeddings[name] for name in names[: names.index(token.embedding)])
        return tuple(range(start, start + len(token.columns)))

    @property
    def pooled_columns(self) -> list[list[int]]:
        """What each token adds to the pool, as columns of [features, 0, 1]: its numbers, then a one for its share."""
        size, zero = sum(self.embeddings.values()), self.num_features
        rows = [[zero] * (size + len(self.tokens)) for _ in self.tokens]
        for i, token in enumerate(self.tokens):
            for place, column in zip((*self.places(token), size + i), (*token.columns, zero + 1), strict=True):
                rows[i][place] = column
        return rows

    @property
    def attention_width(self) -> int:
        """Numbers in a key or value, all heads together."""
        return self.heads * self.head_width


@dataclass(frozen=True)
class NmnArchitecture(Architecture):
    """`nmn`: one GRU on the flat feature vector, and a head each for velocity, log-std and contacts."""

    kind: str = "nmn"
    hidden: int = 256
    mlp: int = 224
    """With it a step costs 3.3 times one of `gait`, the only figure of the size in the paper."""


@dataclass(frozen=True)
class LegsArchitecture(Architecture):
    """`gait-legs`: every leg measures the velocity; the network gives its variance.

    All legs share the weights, and the features (`gait.nets.features`) mean the same on every robot, so one set of
    weights serves robots of any size and number of legs. Here `targets` tells whether the ground's forces are among the
    features, for which joint torques or targets are needed.
    """

    kind: str = "gait-legs"
    mlp: int = 64
    """Width of the layer behind the attention."""
    frames: int = 7
    """Frames of the past that are read of a leg, the present one among them."""
    stride: int = 2
    """Samples from one frame to the next."""
    heads: int = 2
    """Attention heads between legs."""
    head_width: int = 16
    """Numbers in a query, key or value of one head; 0 leaves every leg alone."""
    correction: bool = False
    """Whether the network may shift what a leg measures along z: feet and ground give way. Otherwise, and along the
    ground, it only predicts the variance."""
    position: bool = True
    """Whether it sees where the foot is."""
    log_std_min: float = -5.0
    """Of what a filter may take for white noise at the network's rate: 7 mm/s."""
    log_std_max: float = 5.0
    """150 m/s: nothing at all."""

    @property
    def joint_features(self) -> tuple[str, ...]:
        """Three numbers each, as of joints; but leg by leg in the feature vector. The network reads `leg_columns`."""
        return ("position", "velocity", "force", "foot_accel")

    @property
    def leg_columns(self) -> tuple[int, ...]:
        """Which of a leg's numbers (position, velocity, force) the network reads."""
        return (*(range(3) if self.position else ()), *range(3, 6), *(range(6, 9) if self.targets else ()))

    @property
    def token(self) -> int:
        """Numbers of a leg in one frame: six that all legs share, and its own."""
        return 6 + len(self.leg_columns)

    @property
    def lags(self) -> tuple[int, ...]:
        """Age of each frame in samples, newest first."""
        return tuple(range(0, self.frames * self.stride, self.stride))

    @property
    def attention_width(self) -> int:
        """Numbers in a key or value, all heads together."""
        return self.heads * self.head_width


_CLASSES: dict[str, type[Architecture]] = {
    "gait": AttentionArchitecture,
    "gait-flat": AttentionArchitecture,
    "nmn": NmnArchitecture,
    "gait-legs": LegsArchitecture,
}
KINDS = tuple(_CLASSES)
"""Names of the networks."""


def architecture_of(values: Mapping[str, Any]) -> Architecture:
    """The architecture with these values; its kind decides which, and what is not given has its default.

    Raises:
        GaitError: if the kind is unknown or does not have one of the values.
    """
    kind = values.get("kind", "gait")
    if kind not in KINDS:
        raise GaitError(f"unknown network '{kind}': choose one of {', '.join(KINDS)}")
    known = [field.name for field in fields(_CLASSES[kind])]
    for name in values:
        if name not in known:
            raise GaitError(f"network {kind} has no '{name}': it has {', '.join(known)}")
    return _CLASSES[kind](**values)


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
    return shapes | _linear("output", a.mlp, OUTPUTS + a.correction)


def _linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _gru(name: str, inputs: int, hidden: int) -> Shapes:
    shapes: Shapes = {}
    for part, count in (("ih", inputs), ("hh", hidden)):
        shapes |= {f"{name}.weight_{part}_l0": (3 * hidden, count), f"{name}.bias_{part}_l0": (3 * hidden,)}
    return shapes


def _mlp(name: str, inputs: int, width: int, outputs: int) -> Shapes:
    return _linear(f"{name}.hidden", inputs, width) | _linear(f"{name}.output", width, outputs)
