"""Which joint is which: the names in a log or a message against those of a robot.

Everybody names joints in a way of their own: `FR_hip_joint`, `go1/FR_hip`, `RF_HAA`, `front_right_abduction`, `fr.hx`.
Rules are tried from the strict to the lenient, and one of them must fit all joints of the robot, each with one name;
so a name is never taken for two joints, nor half of the robot matched by chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gait.errors import GaitError

Names = Sequence[str]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NOISE = {"joint", "leg", "motor", "link", "actuator", "j"}

_ENDS = {**dict.fromkeys(("f", "front", "fore"), "F"), **dict.fromkeys(("h", "b", "rear", "hind", "back"), "R")}
_SIDES = {"l": "L", "left": "L", "r": "R", "right": "R"}
# Two letters in either order; R is rear only where the other letter says the side, and RR both.
_LEGS = {
    **dict.fromkeys(("fr", "rf"), "FR"),
    **dict.fromkeys(("fl", "lf"), "FL"),
    **dict.fromkeys(("rr", "hr", "rh", "br", "rb"), "RR"),
    **dict.fromkeys(("rl", "lr", "hl", "lh", "bl", "lb"), "RL"),
}
_ABDUCTION = {"haa", "abad", "abd", "abduction", "abductor", "hx", "hipx", "hipaa", "roll", "aa", "x"}
_LINKS = {
    **dict.fromkeys(("hip", "haa", "abad", "abd", "abduction", "abductor", "hx", "hipx", "hipaa", "0"), "hip"),
    **dict.fromkeys(("thigh", "hfe", "hy", "hipy", "hipfe", "upper", "femur", "1"), "thigh"),
    **dict.fromkeys(("calf", "kfe", "kn", "knee", "shank", "shin", "lower", "tibia", "2"), "calf"),
}


@dataclass(frozen=True)
class JointMap:
    """Where each joint of a robot is found."""

    index: tuple[int, ...]
    """For each joint of the robot, its place in the log."""
    note: str
    """How it was found, in words; empty if the names were the robot's own, in its order."""


def match_joints(theirs: Names, ours: Names, given: str | None = None) -> JointMap:
    """Find the joints of a robot among the names of a log or a message.

    Args:
        theirs: names in the log, in its order; names it has beyond those of the robot do not matter.
        ours: names of the robot's joints, `Robot.joint_names`.
        given: what the user says, as `ReadOptions.joint_names`: pairs `theirs=ours`, where theirs may
            be our name for it too, or ours in their order.

    Raises:
        GaitError: if no rule fits all joints; the message has the option to type.
    """
    theirs, ours = list(theirs), list(ours)
    pairs = _pairs(given, theirs, ours)
    found = _by_rules(theirs, ours, pairs)
    if found is None:
        raise GaitError(_complaint(theirs, ours, pairs))
    names, words = found
    return JointMap(tuple(theirs.index(names[name]) for name in ours), _note(names, ours, theirs, words))


def _by_rules(theirs: Names, ours: Names, pairs: Mapping[str, str]) -> tuple[dict[str, str], str] | None:
    """Their name for each of ours by the first rule that fits all that are not given, and the rule in words."""
    wanted = [name for name in ours if name not in pairs]
    left = [name for name in theirs if name not in pairs.values()]
    for key, our_key, words in _RULES:
        found = _by_key(left, wanted, key, our_key)
        if found is not None:
            return {**pairs, **found}, words
    return None


def _plain(name: str) -> object:
    """Letters alone, without a name space before or `joint` after them."""
    tail = re.split(r"[/:]", name)[-1]
    return "".join(word for word in words_of(tail) if word not in _NOISE) or None


def meaning_of(name: str, hip: str = "hip") -> object:
    """Leg and link, where a name says both and says them once; `hip` is what the bare word hip stands for."""
    words = [word for word in words_of(name) if word not in _NOISE]
    legs, ends, sides = ({table[word] for word in words if word in table} for table in (_LEGS, _ENDS, _SIDES))
    if not legs and len(ends) == 1 and len(sides) == 1:
        legs = {ends.pop() + sides.pop()}
    links = {_LINKS[word] for word in words if word in _LINKS}
    if links == {"hip"} and not _ABDUCTION & set(words):
        links = {hip}
    if "hip" in links and {"pitch", "flexion", "fe", "y"} & set(words):
        links = (links - {"hip"}) | {"thigh"}
    if len(links) > 1:
        # A number beside a word is a count, not a link.
        links = {_LINKS[word] for word in words if word in _LINKS and not word.isdigit()}
    return (legs.pop(), links.pop()) if len(legs) == len(links) == 1 else None


_Key = Callable[[str], object]
_RULES: tuple[tuple[_Key, _Key, str], ...] = (
    (str, str, ""),
    (_plain, _plain, "but for prefixes and the word joint"),
    (meaning_of, meaning_of, "by what their names mean"),
    # Where abduction has a name of its own: abad, hip, knee are hip, thigh, calf.
    (partial(meaning_of, hip="thigh"), meaning_of, "by what their names mean (hip is the thigh joint)"),
)
"""How to look at their names and at ours, from the strict to the lenient."""


def words_of(name: str) -> list[str]:
    """The words and numbers of a name, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def _by_key(theirs: Names, ours: Names, key: _Key, our_key: _Key) -> dict[str, str] | None:
    """Their name for each of ours, if every one of ours has exactly one."""
    keys, wanted = [key(name) for name in theirs], [our_key(name) for name in ours]
    if any(one is None or keys.count(one) != 1 or wanted.count(one) != 1 for one in wanted):
        return None
    return {name: theirs[keys.index(one)] for name, one in zip(ours, wanted, strict=True)}


def _pairs(given: str | None, theirs: Names, ours: Names) -> dict[str, str]:
    """What the user said, as their name for each of ours."""
    if not given:
        return {}
    items = [item.strip() for item in given.split(",") if item.strip()]
    paired = any("=" in item for item in items)
    if not paired and len(items) != len(theirs):
        raise GaitError(
            f"--joint-names has {len(items)} names but there are {len(theirs)} joints: give one for each, in the"
            " order of the log"
        )
    both = [item.partition("=")[::2] for item in items] if paired else zip(theirs, items, strict=True)
    pairs = {target.strip(): name.strip() for name, target in both}
    if any(name not in theirs and name in ours for name in pairs.values()):
        # A joint by our name is the one that is taken for it otherwise: so does a check name what it found.
        usual, _ = _by_rules(theirs, ours, {}) or ({}, "")
        pairs = {target: name if name in theirs else usual.get(name, name) for target, name in pairs.items()}
    for names, known, who in (pairs.values(), theirs, "log"), (pairs if paired else (), ours, "robot"):
        unknown = [name for name in names if name not in known]
        if unknown:
            have = ", ".join(known)
            raise GaitError(f"--joint-names speaks of '{unknown[0]}', which the {who} has not: its joints are {have}")
    return {name: pairs[name] for name in ours if name in pairs}


def _note(names: Mapping[str, str], ours: Names, theirs: Names, words: str) -> str:
    if words:
        first = next((name for name in ours if names[name] != name), ours[0])
        return f"joints matched {words}, such as {names[first]} for {first}"
    if [names[name] for name in ours] == list(theirs):
        return ""
    extra = len(theirs) - len(ours)
    return "joints put into the order of the robot" + (f", {extra} more left out" if extra > 0 else "")


def _complaint(theirs: Names, ours: Names, pairs: Mapping[str, str]) -> str:
    """What is not found, and the option to type: pairs for what is missing, in the order in which it stands."""
    listed = ", ".join(theirs) if theirs else "none with a name"
    if len(theirs) < len(ours):
        return (
            f"the robot has {len(ours)} joints but the log has {len(theirs)} ({listed}): choose another topic with"
            " --joints, or another --robot"
        )
    meant = [meaning_of(name) for name in theirs]
    sure = {meaning for meaning in meant if meaning is not None and meant.count(meaning) == 1}
    missing = [name for name in ours if name not in pairs and meaning_of(name) not in sure] or list(ours)
    known = {meaning_of(name) for name in ours} & sure
    free = [name for name in theirs if name not in pairs.values() and meaning_of(name) not in known]
    typed = ",".join(f"{name}={target}" for name, target in zip(free, missing, strict=False))
    return f"cannot tell which joint is {missing[0]} among {listed}: say so, if it is so, with --joint-names '{typed}'"
