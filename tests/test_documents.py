"""YAML and JSON from anyone: bounded, and every fault of one kind."""

import pytest
import yaml

from gait import GaitError
from gait.documents import LARGEST, load_json, load_yaml, named, shown

LAUGHS = "a0: &a0 [1, 1]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))


def test_a_description_is_what_yaml_says() -> None:
    text = "a: {b: [1, 2.5, x], c: null}\nd: &d [1]\ne: *d\n"
    assert load_yaml(text) == yaml.safe_load(text)
    assert load_yaml("") is None


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, LAUGHS, "&a [*a]", "a: 2020-13-45", "a: !!timestamp x", "a: !!bool x", "a: !!int ''",
     f"a: {'9' * 5000}", "- 1\n" * LARGEST, "a: [", "a: !!python/object:os.system x"],
)  # fmt: skip
def test_every_fault_of_yaml_is_a_yaml_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "{", ""])
def test_every_fault_of_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        load_json(text)


def test_values_in_messages_are_short() -> None:
    assert shown([1, "a"]) == "[1, 'a']" and named("a") == "a" and named(3) == "3"
    for value in (int("f" * 5000, 16), "x" * 10**6, [[[[[[1]]]]]] * 10**5, {i: i for i in range(1000)}, yaml):
        assert len(shown(value)) < 500


def test_a_message_is_one_short_line_that_no_terminal_obeys() -> None:
    error = GaitError("bad name '" + "a\x1b[2J\n" * 1000 + "': give another")
    assert len(str(error)) < 1000 and str(error).isprintable() and str(error).endswith("give another")
    assert str(GaitError("grüße, 日本")) == "grüße, 日本"
