"""The logic of benchmarks/networks.py and benchmarks/attention.py: what is grouped, chosen, counted and written."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest

pytest.importorskip("torch", reason=needs.extra("torch"))
pytest.importorskip("mujoco", reason=needs.extra("mujoco"))
pytest.importorskip("daqp", reason=needs.extra("daqp"))

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import attention
import held
import networks
import sections
from log_samples import make_log
from looks import Look, looks_of
from net_samples import random_model
from networks import Entry, Group

from gait.errors import GaitError
from gait.nets import Model
from gait.sim.world import TERRAINS
from gait.train.config import TrainConfig
from gait.train.validate import NetworkScore


def trained(kind: str = "gait", gaits: tuple[str, ...] = ("trot",), data: str = "a", **values: Any) -> Model:
    """A model that says it was trained on one collection for each gait."""
    config = TrainConfig(network=kind, **values)
    collections = tuple({"gait": gait, "terrain": "flat", "index_sha256": data + gait} for gait in gaits)
    return replace(random_model(kind, targets=config.targets), training=config.as_dict(), data=collections)


def scored(error: float) -> NetworkScore:
    """The same error along x on every walk."""
    return NetworkScore(np.array([error, 0.0, 0.0]), (0.683, 0.954), 0.0, np.ones(3), 1)


def entry(seed: int, validation: float, error: float = 0.1) -> Entry:
    return Entry(f"seed-{seed}", seed, validation, dict.fromkeys(held.WALKS, scored(error)))


def look(legs: Any, contact: Any) -> Look:
    legs = np.asarray(legs, dtype=float)
    rest, zero = (1.0 - legs.sum(1)) / 2.0, np.zeros((len(legs), 3))
    return Look(
        t=np.arange(len(legs)) * 0.002, gyro=rest, accel=rest, newest=rest, legs=legs,
        by_head=np.stack([legs, -legs], 1),
        contact=np.asarray(contact, dtype=bool), velocity=zero, std=zero + 1.0, truth=zero + np.array([0.0, 0.0, 3.0]),
    )  # fmt: skip


def test_walks_are_held_out_and_cover_every_terrain_and_gait() -> None:
    # Ice is for training; slippery ground is held out.
    assert {walk.terrain for walk in held.WALKS.values()} == set(TERRAINS) - {"ice"}
    assert {walk.gait for walk in held.WALKS.values()} == {"trot", "bound", "pace", "pronk"}
    assert all(walk.seed == 777 and walk.sensors == "training" and not walk.nominal for walk in held.WALKS.values())
    assert len(set(held.HEADS.values())) == len(held.WALKS)


def test_seeds_of_one_training_form_a_group_in_order() -> None:
    models = {"b": trained(seed=1), "a": trained(seed=0), "n": trained("nmn", half=True)}
    assert networks.group_models(models) == {Group("gait"): {0: "a", 1: "b"}, Group("nmn"): {0: "n"}}


@pytest.mark.parametrize(
    ("model", "group"),
    [
        (trained(targets=False), Group("gait", targets=False)),
        (trained(gaits=("pronk", "bound")), Group("gait", ("bound", "pronk"))),
        (trained(gaits=("trot", "airborne")), Group("gait", airborne=True)),
        (trained(sequences=64), Group("gait", others=("sequences 64",))),
    ],
)
def test_what_differs_by_more_than_the_seed_is_another_group(model: Model, group: Group) -> None:
    assert networks.group_of(model) == group
    assert not group.plain
    assert len(networks.group_models({"plain": trained(), "other": model})) == 2


def test_settings_younger_than_a_model_do_not_set_it_apart() -> None:
    model = trained()
    old = {name: value for name, value in model.training.items() if name != "clip"}
    assert networks.group_of(replace(model, training=old)).plain


def test_settings_that_trainings_no_longer_have_still_set_a_model_apart() -> None:
    model = trained()
    assert networks.group_of(replace(model, training={**model.training, "mask_hold": 1})).plain
    for setting in ({"mask_hold": 1000}, {"forgotten": True}):
        assert not networks.group_of(replace(model, training={**model.training, **setting})).plain


def test_models_that_cannot_be_averaged_are_refused() -> None:
    with pytest.raises(GaitError, match="both seed 0"):
        networks.group_models({"a": trained(), "b": trained()})
    with pytest.raises(GaitError, match="different data"):
        networks.group_models({"a": trained(), "b": trained(seed=1, data="b")})


def test_the_median_is_of_validation_and_ignores_the_held_out_walks() -> None:
    entries = [entry(0, 0.03, error=0.1), entry(1, 0.01, error=0.2), entry(2, 0.02, error=0.9)]
    assert networks.median_entry(entries).seed == 2
    assert networks.median_entry(entries[:2]).seed == 1  # the better of two


def test_tables_give_mean_and_spread_over_seeds() -> None:
    groups = {Group("gait"): [entry(0, 0.1, 0.1), entry(1, 0.2, 0.3)], Group("nmn"): [entry(0, 0.1, 0.25)]}
    lines = networks.norm_table(groups).splitlines()
    assert {line.count("|") for line in lines} == {len(held.WALKS) + 3}
    assert lines[2].startswith("| `gait` | 2 | 0.200 ± 0.141 | 0.200 ± 0.141 |")
    assert lines[3].startswith("| `nmn` | 1 | 0.250 | 0.250 |")
    axes = networks.axis_table(groups).splitlines()
    assert axes[2].startswith("| `gait`, x | 0.200 |")
    assert axes[3].startswith("| `gait`, y | 0.000 |")
    assert networks.calibration_table(groups).splitlines()[2].startswith("| `gait` | 68, 95 |")


def test_the_order_of_the_paper_is_checked_by_means() -> None:
    groups = {Group(kind): [entry(0, 0.1, error)] for kind, error in (("gait", 0.2), ("gait-flat", 0.3), ("nmn", 0.4))}
    assert networks.order_lines(groups)[0] == "bound: yes (gait 0.200, gait-flat 0.300, nmn 0.400)"
    groups[Group("nmn")] = [entry(0, 0.1, 0.25)]
    assert networks.order_lines(groups)[0] == "bound: no (gait 0.200, nmn 0.250, gait-flat 0.300)"
    del groups[Group("nmn")]
    assert networks.order_lines(groups) == []


def test_a_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- x:begin -->\nold\n<!-- x:end -->\nafter ± ü\n", encoding="utf-8")
    for text in ("first", "second\n\nthird"):
        sections.write_section("x", text, path)
        expected = f"before\n<!-- x:begin -->\n{text}\n<!-- x:end -->\nafter ± ü\n"
        assert path.read_text(encoding="utf-8") == expected


@pytest.mark.parametrize("page", ["", "<!-- x:begin -->", "<!-- x:end --><!-- x:begin -->", "<!-- x:begin -->" * 2])
def test_a_page_without_sound_marks_is_left_alone(tmp_path: Path, page: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(GaitError, match=r"page.md must hold"):
        sections.write_section("x", "text", path)
    assert path.read_text(encoding="utf-8") == page


def test_legs_are_counted_in_stance_and_swing() -> None:
    figures = attention.leg_figures(look([[0.4, 0.1], [0.1, 0.2], [0.4, 0.1]], [[1, 0], [0, 1], [1, 0]]))
    assert figures["leg_share_in_stance"] == pytest.approx((0.4 + 0.2 + 0.4) / 3)
    assert figures["leg_share_in_swing"] == pytest.approx(0.1)
    assert figures["correlation_with_contact"] == pytest.approx(1.0)
    assert figures["lowest_head_correlation"] == pytest.approx(-1.0)
    assert figures["highest_head_correlation"] == pytest.approx(1.0)
    assert figures["flight_share"] == 0.0


def test_shares_sum_to_one_and_legs_are_matched_by_name() -> None:
    model, log = random_model(), make_log(40)
    seen = looks_of(model, [log])[0]
    np.testing.assert_allclose(seen.gyro + seen.accel + seen.legs.sum(1), 1.0, atol=1e-6)
    np.testing.assert_allclose(seen.by_head.mean(1), seen.legs, atol=1e-12)
    turned = looks_of(replace(model, leg_names=model.leg_names[::-1]), [log])[0]
    np.testing.assert_array_equal(turned.contact, seen.contact[:, ::-1])
    with pytest.raises(GaitError, match="leg tokens"):
        looks_of(random_model("gait-flat"), [log])


def test_correlation_is_numpys_and_zero_for_a_share_that_rests() -> None:
    rng = np.random.default_rng(0)
    share, contact = rng.random((50, 2)), rng.random((50, 2)) < 0.4
    expected = np.mean([np.corrcoef(share[:, i], contact[:, i])[0, 1] for i in range(2)])
    assert attention.correlation(share, contact) == pytest.approx(expected)
    assert attention.correlation(np.full((50, 2), 0.2), contact) == pytest.approx(0.0, abs=1e-9)


def test_flight_is_where_no_foot_stands_and_short_phases_are_left_out() -> None:
    figures = attention.figures_of(look([[0.3, 0.1], [0.1, 0.1]], [[1, 0], [0, 0]]))
    assert figures["flight_share"] == 0.5
    assert figures["support.legs_share"] == pytest.approx(0.4)
    assert figures["flight.legs_share"] == pytest.approx(0.2)
    assert figures["flight.velocity_rmse"] == pytest.approx(3.0)
    assert figures["flight.predicted_std"] == pytest.approx(np.sqrt(3.0))
    assert figures["flight.within_2_sigma"] == pytest.approx(2.0 / 3.0)
    grounded = attention.figures_of(look([[0.3, 0.1], [0.2, 0.2]], [[1, 0], [1, 1]]))
    assert not any(name.startswith("flight.") for name in grounded)
