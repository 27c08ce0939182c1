"""Joints by name: the ways in which people spell them, and what is said where no spelling helps."""

import re

import pytest

from gait import GaitError, Robot
from gait.io.joints import match_joints

OURS = Robot.load("go1").joint_names


def spelled(legs: str, joints: str, form: str = "{leg}_{joint}") -> list[str]:
    """Names leg by leg; legs are given as FR, FL, RR, RL, whatever they are called."""
    return [form.format(leg=leg, joint=joint) for leg in legs.split() for joint in joints.split()]


@pytest.mark.parametrize(
    "names",
    [
        spelled("FR FL RR RL", "hip thigh calf"),
        spelled("FR FL RR RL", "hip_joint thigh_joint calf_joint", "go1_gazebo/{leg}_{joint}"),
        spelled("RF LF RH LH", "HAA HFE KFE"),
        spelled("fr fl hr hl", "hx hy kn", "{leg}.{joint}"),
        spelled("front_right front_left rear_right rear_left", "hip_roll hip_pitch knee"),
        spelled("FR FL RR RL", "hip_joint upper_leg_joint lower_leg_joint"),
        spelled("frontRight frontLeft hindRight hindLeft", "Abduction Thigh Shank", "{leg}{joint}"),
        spelled("fr fl rr rl", "abad hip knee", "{joint}_{leg}"),
        spelled("FR FL RR RL", "0 1 2"),
    ],
    ids=lambda names: names[0],
)
def test_every_spelling_finds_its_joint_in_any_order(names: list[str]) -> None:
    for order in (names, names[::-1], ["arm_1", *names[6:], "gripper", *names[:6]]):
        found = match_joints(order, OURS)
        assert [order[i] for i in found.index] == names
        assert found.note.startswith("joints matched")


def test_our_own_names_need_no_note_unless_they_are_moved() -> None:
    assert match_joints(OURS, OURS).note == ""
    moved = match_joints([*OURS[6:], *OURS[:6], "arm"], OURS)
    assert moved.index == (*range(6, 12), *range(6))
    assert moved.note == "joints put into the order of the robot, 1 more left out"


def test_what_one_is_told_to_type_works() -> None:
    names = [f"joint_{i}" for i in range(12)]
    with pytest.raises(GaitError, match="cannot tell which joint is FR_hip_joint among joint_0") as refusal:
        match_joints(names, OURS)
    typed = re.search("--joint-names '(.*)'", str(refusal.value))
    assert typed is not None
    assert match_joints(names, OURS, typed[1]).index == tuple(range(12))
    assert match_joints(names, OURS, ",".join(OURS[::-1])).index == tuple(range(12))[::-1]


def test_one_odd_name_is_all_that_needs_to_be_told() -> None:
    names = [*OURS[:2], "shin_one", *OURS[3:]]
    with pytest.raises(GaitError, match="--joint-names 'shin_one=FR_calf_joint'"):
        match_joints(names, OURS)
    assert match_joints(names, OURS, "shin_one=FR_calf_joint").index == tuple(range(12))


def test_two_joints_that_might_be_one_are_not_guessed() -> None:
    with pytest.raises(GaitError, match="cannot tell which joint is FR_hip_joint"):
        match_joints([*spelled("FR FL RR RL", "HAA HFE KFE"), "RF_HAA"], OURS)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a=FR_hip_joint", "speaks of 'a', which the log has not"),
        ("FR_hip_joint=nose", "speaks of 'nose', which the robot has not"),
        ("FR_hip_joint,FR_calf_joint", "has 2 names but there are 12 joints"),
    ],
)
def test_a_wrong_word_of_the_user_is_named(given: str, words: str) -> None:
    with pytest.raises(GaitError, match=words):
        match_joints(OURS, OURS, given)


def test_too_few_joints_are_told() -> None:
    with pytest.raises(GaitError, match="the robot has 12 joints but the log has 2"):
        match_joints(["a", "b"], OURS)
