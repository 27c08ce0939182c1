"""The networks of the C core give what their numpy reference gives, whatever is hidden."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_calls import CoreLegs, CoreNetwork, declare, inner
from net_samples import legs_model, random_inputs, random_model

from gait.nets import Model, load_model
from gait.nets.architecture import AttentionArchitecture, LegsArchitecture
from gait.nets.model import WEIGHTS
from gait.nets.pack import pack, pack_legs
from gait.reference.network import NumpyLegs, NumpyNetwork

CORE = Path(__file__).parents[2] / "core"
FLAGS = ("-std=c99", "-O3", "-Wall", "-Wextra", "-Werror", "-pedantic", "-ffp-contract=off", "-shared", "-fPIC")
WIDTHS = {"baseline": (), "scalar": ("-DGAIT_LANES=1",)}
"""Flags of builds for any machine of this kind, and without vectors; `packaged` is the library that runs."""
VARIANTS: list[dict[str, Any]] = [
    {"kind": "gait"},
    {"kind": "gait", "legs": 2},
    {"kind": "gait", "targets": False},
    {"kind": "gait", "history": 3, "latents": 3, "heads": 2, "width": 8, "head_width": 5, "hidden": 7, "mlp": 70},
    {"kind": "gait", "history": 1, "width": 40, "hidden": 65},
    {"kind": "gait", "latents": 1, "heads": 1, "hidden": 33, "mlp": 3},
    {"kind": "gait-flat"},
    {"kind": "gait-flat", "legs": 2, "targets": False, "latents": 5, "heads": 3, "width": 70},
    {"kind": "nmn"},
    {"kind": "nmn", "legs": 2, "targets": False, "hidden": 40},
]
LEG_VARIANTS: list[dict[str, Any]] = [
    {},
    {"legs": 2, "correction": True},
    {"targets": False},
    {"legs": 6, "position": False},
    {"head_width": 0, "correction": True},
    {"frames": 1, "hidden": 70, "mlp": 20, "heads": 3, "head_width": 5},
    {"frames": 3, "stride": 3, "hidden": 10, "mlp": 100, "heads": 1, "head_width": 40, "correction": True},
]
SHIPPED = sorted(path.stem for path in WEIGHTS.glob("*.safetensors"))


@pytest.fixture(scope="module", params=["packaged", *WIDTHS])
def core(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The networks of the core in the packaged library, for any machine of its kind, and without vectors."""
    if request.param == "packaged":
        return inner()
    library = tmp_path_factory.mktemp("core") / "network.so"
    sources = [str(CORE / "network.c"), str(CORE / "leg_network.c")]
    subprocess.run(["cc", *FLAGS, *WIDTHS[request.param], f"-I{CORE}", *sources, "-o", str(library)], check=True)
    return declare(ctypes.CDLL(str(library)))


def tokens_of(model: Model) -> int:
    a = model.architecture
    return len(a.tokens) if isinstance(a, AttentionArchitecture) else 0


def masks(model: Model, steps: int) -> dict[str, np.ndarray]:
    count, rng = tokens_of(model), np.random.default_rng(4)
    leg_gone, nothing_for_long = np.ones((2, steps, count), dtype=bool)
    leg_gone[:, -1:] = False
    nothing_for_long[10:30] = False
    return {
        "all": np.ones((steps, count), dtype=bool),
        "random": rng.random((steps, count)) > 0.4,
        "leg gone": leg_gone,
        "nothing for long": nothing_for_long,
    }


def samples_of(model: Model, steps: int = 60) -> np.ndarray:
    return np.ascontiguousarray(random_inputs(model.architecture, 1, steps)[0].numpy())


def hold_against_reference(core: Any, model: Model, inputs: np.ndarray) -> None:
    ours, reference = CoreNetwork(model, core), NumpyNetwork(model)
    for name, mask in masks(model, len(inputs)).items():
        ours.reset()
        reference.reset()
        outputs = []
        for x, seen in zip(inputs, mask, strict=True):
            outputs.append(ours.step(x, seen))
            assert np.abs(outputs[-1] - np.concatenate(reference.step(x, seen))).max() < 1e-5, name
            if tokens_of(model):
                looked = ours.attention()
                assert np.abs(looked - reference.attention()).max() < 1e-5, name
                assert (looked[-1][~seen] == 0.0).all(), name
        assert np.std(outputs, axis=0).min() > 0.01  # it does not say the same whatever it sees


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_steps_equal_the_reference(core: Any, variant: dict[str, Any]) -> None:
    model = random_model(**variant)
    hold_against_reference(core, model, samples_of(model))


@pytest.mark.parametrize("name", SHIPPED)
def test_steps_of_shipped_models_equal_the_reference(core: Any, name: str) -> None:
    model, rng = load_model(name), np.random.default_rng(0)
    a = model.architecture
    inputs = rng.normal(size=(200, a.num_features)).cumsum(0) / 20.0
    if isinstance(a, LegsArchitecture):
        # What all legs share, then the numbers of a leg that are read; the others may be anything.
        inputs[:, :6] = model.weights["mean"][:6] + model.weights["std"][:6] * inputs[:, :6]
        own = inputs[:, 6:].reshape(200, a.legs, -1)
        own[..., a.leg_columns] = model.weights["mean"][6:] + model.weights["std"][6:] * own[..., a.leg_columns]
        hold_legs_against_reference(core, model, inputs)
    else:
        hold_against_reference(core, model, (model.weights["mean"] + model.weights["std"] * inputs).astype(np.float32))


def leg_features_of(model: Model, steps: int = 60) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(steps, model.architecture.num_features)).cumsum(0) / 5.0


def leg_masks(legs: int, steps: int) -> dict[str, np.ndarray]:
    gone, back = np.ones((2, steps, legs), dtype=bool)
    gone[:, 1] = False
    back[20:35, 1] = False
    return {
        "all": np.ones((steps, legs), dtype=bool),
        "random": np.random.default_rng(2).random((steps, legs)) > 0.3,
        "gone": gone,
        "back again": back,
    }


def hold_legs_against_reference(core: Any, model: Model, features: np.ndarray) -> None:
    legs, ours, reference = model.architecture.legs, CoreLegs(model, core), NumpyLegs(model)
    for name, mask in leg_masks(legs, len(features)).items():
        ours.reset()
        reference.reset()
        outputs = []
        for x, seen, before in zip(features, mask, np.concatenate([mask[:1], mask[:-1]]), strict=True):
            outputs.append(ours.step(x, seen, before))
            assert np.abs(outputs[-1] - np.hstack(reference.step(x, seen, before))).max() < 1e-5, name
            looked = ours.attention()
            assert np.abs(looked - (reference.attention if reference.attention.size else 0.0)).max() < 1e-5, name
        assert np.std(outputs, axis=0)[mask.any(0)].min() > 0.003


@pytest.mark.parametrize("variant", LEG_VARIANTS, ids=str)
def test_steps_of_legs_equal_the_reference(core: Any, variant: dict[str, Any]) -> None:
    model = legs_model(**variant)
    hold_legs_against_reference(core, model, leg_features_of(model))


@pytest.mark.parametrize("kind", ["gait", "gait-flat"])
def test_what_is_hidden_may_be_nan(core: Any, kind: str) -> None:
    model = random_model(kind)
    assert isinstance(model.architecture, AttentionArchitecture)
    inputs, ours = samples_of(model), CoreNetwork(model, core)
    seen = masks(model, len(inputs))["leg gone"]
    broken = inputs.copy()
    broken[:, list(model.architecture.tokens[-1].columns)] = math.nan
    assert np.array_equal(run(ours, broken, seen), run(ours, inputs, seen))


def test_a_leg_that_was_nan_comes_back(core: Any) -> None:
    model = legs_model(correction=True)
    features, seen = leg_features_of(model), leg_masks(4, 60)["back again"]
    before = np.concatenate([seen[:1], seen[:-1]])
    broken = features.copy()
    broken[20:35, 6 + 12 : 6 + 24] = math.nan
    ours = CoreLegs(model, core)
    whole, damaged = run(ours, features, seen, before), run(ours, broken, seen, before)
    hidden = ~seen.repeat(6).reshape(60, 4, 6) & (np.arange(6) < 3)  # what a hidden leg measures is passed on
    assert np.isnan(damaged[hidden]).all()
    assert np.array_equal(damaged[~hidden], whole[~hidden])


def run(network: CoreNetwork | CoreLegs, *rows: np.ndarray) -> np.ndarray:
    """The outputs of a new start."""
    network.reset()
    step: Callable[..., np.ndarray] = network.step
    return np.array([step(*row) for row in zip(*rows, strict=True)])


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn", "gait-legs"])
def test_a_reset_is_a_new_start_and_a_copy_of_the_memory_a_network(core: Any, kind: str) -> None:
    if kind == "gait-legs":
        model = legs_model()
        features, seen = leg_features_of(model), leg_masks(4, 60)["random"]
        first, again = CoreLegs(model, core), CoreLegs(model, core)
        rows = [features, seen, np.concatenate([seen[:1], seen[:-1]])]
    else:
        model = random_model(kind)
        first, again = CoreNetwork(model, core), CoreNetwork(model, core)  # type: ignore[assignment]
        rows = [samples_of(model), masks(model, 60)["random"]]
    before = run(first, *rows)
    assert np.array_equal(run(first, *rows), before)
    run(again, *(row[:25] for row in rows))
    first.memory[:] = again.memory
    step: Callable[..., np.ndarray] = first.step
    assert np.array_equal([step(*row) for row in zip(*(row[25:] for row in rows), strict=True)], before[25:])


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
@pytest.mark.parametrize("size", [1e6, 1e-30])
def test_extreme_inputs_give_finite_outputs(core: Any, kind: str, size: float) -> None:
    model = random_model(kind)
    inputs, ours, reference = samples_of(model) * np.float32(size), CoreNetwork(model, core), NumpyNetwork(model)
    for seen in masks(model, len(inputs)).values():
        reference.reset()
        outputs = run(ours, inputs, seen)
        assert np.isfinite(outputs).all()
        truth = [np.concatenate(reference.step(*row)) for row in zip(inputs, seen, strict=True)]
        assert np.abs(outputs - truth).max() < 1e-4


def test_every_pointer_of_a_packed_network_has_its_array() -> None:
    for packed in (pack(random_model()), pack_legs(legs_model())):
        pointers = [name for name, kind in packed._fields_ if hasattr(kind, "contents")]
        assert set(packed.arrays) == set(pointers)
        for name, array in packed.arrays.items():
            address = ctypes.cast(getattr(packed, name), ctypes.c_void_p).value
            assert address == array.ctypes.data and address is not None and address % 64 == 0
