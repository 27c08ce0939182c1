"""The logic of `gait bench latency`: who is measured, on what, what is said. No speed is judged."""

from __future__ import annotations

import json
import sys
import time
from itertools import count, islice
from pathlib import Path

import needs
import numpy as np
import pytest
import torch
from net_samples import random_inputs, random_model

from gait import Estimator, GaitError, Log
from gait.bench import latency, rivals
from gait.bench.latency import AWAKE, PERIOD, SAMPLE, Burst, available, burst_medians, medians, paced, stream
from gait.bench.torch_step import torch_step
from gait.cli import main
from gait.nets.build import network_of
from gait.rows import Row

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

KINDS = ("gait", "gait-flat", "nmn")


@pytest.fixture(scope="module")
def log() -> Log:
    return Log.load(SAMPLE).slice(0.0, 0.2)


# Timing


def test_every_rival_gets_as_many_bursts_and_the_median_counts() -> None:
    # Three tries, the best of which is enough of a burst; then the rounds.
    seconds = {"quick": iter([9.0, 8.0, 70.0, 2.0, 2.0, 90.0]), "slow": iter([60.0, 50.0, 50.0, 7.0, 5.0, 6.0])}
    calls: list[tuple[str, int]] = []

    def rival(name: str) -> Burst:
        def burst(number: int) -> float:
            calls.append((name, number))
            return number * next(seconds[name]) * 1e-6

        return burst

    found = burst_medians({name: rival(name) for name in seconds}, rounds=3, seconds=8e-6)
    turns = [name for name, _ in calls[-6:]]
    assert [set(turns[i : i + 2]) for i in (0, 2, 4)] == [{"quick", "slow"}] * 3
    assert found == pytest.approx({"quick": 2.0, "slow": 6.0})


def test_a_burst_is_long_enough_but_never_less_than_a_call() -> None:
    for call, expected in ((1e-3, 2), (1e-5, 128), (0.5, 1)):
        numbers: list[int] = []

        def burst(number: int, call: float = call, numbers: list[int] = numbers) -> float:
            numbers.append(number)
            return number * call

        burst_medians({"a": burst}, rounds=1, seconds=2e-3)
        assert numbers[-1] == pytest.approx(expected, abs=1 if expected > 1 else 0)


def test_functions_are_timed_by_name() -> None:
    calls = count()
    found = medians({"a": lambda: next(calls), "b": lambda: time.sleep(1e-4)}, rounds=3, burst=1e-5)
    assert next(calls) > 3 and found["a"] > 0.0 and found["b"] > 100.0  # a sleep is never shorter than asked for


class Clock:
    """Time that passes only on sleep, a look at the clock or work."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, 0.0

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds


def test_paced_steps_start_on_time_and_take_turns() -> None:
    clock, starts = Clock(), []

    def works(name: str, seconds: float) -> object:
        def step(sample: int) -> None:
            starts.append((name, sample, clock.now))
            clock.now += seconds

        return step, count()

    times = paced({"a": works("a", 1e-4), "b": works("b", 3e-4)}, 0.5, clock, clock.sleep)  # type: ignore[dict-item]
    assert {name: len(values) for name, values in times.items()} == {"a": 250, "b": 250}
    assert np.median(times["a"]) == pytest.approx(101, abs=1) and np.median(times["b"]) == pytest.approx(301, abs=1)
    assert [name for name, _, _ in starts] == ["a"] * 125 + ["b"] * 125 + ["a"] * 125 + ["b"] * 125
    assert [sample for name, sample, _ in starts if name == "a"] == list(range(250))
    assert np.median(np.diff([t for *_, t in starts])) == pytest.approx(PERIOD, rel=1e-3)
    assert clock.slept < 500 * (PERIOD - AWAKE), "it wakes up before a sample is due"


def test_a_paced_run_that_was_held_up_does_not_hurry_afterwards() -> None:
    clock, starts = Clock(), []

    def step(sample: int) -> None:
        starts.append(clock.now)
        clock.now += 0.02 if sample == 3 else 1e-5

    paced({"a": (step, count())}, 0.02, clock, clock.sleep)
    gaps = np.diff(starts)
    assert gaps.max() == pytest.approx(0.02, rel=0.01) and gaps.min() > 0.99 * PERIOD


# Samples and rivals


def test_the_clock_of_a_stream_goes_on_when_the_log_begins_anew(log: Log) -> None:
    samples = list(islice(stream(log), 2 * len(log)))
    np.testing.assert_allclose([sample.t for sample in samples], np.arange(2 * len(log)) * 0.002, atol=1e-12)
    np.testing.assert_array_equal(samples[len(log) + 3].q, log.q[3])
    assert samples[0].tau is None
    np.testing.assert_array_equal(next(stream(log, torques=True)).tau, log.tau[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", latency.NETWORKS)
def test_rivals_say_what_the_estimator_s_network_says(log: Log, kind: str, name: str) -> None:
    needs.package("torch")
    if name == "onnxruntime":
        needs.package("onnxruntime")
        needs.package("onnx")
    model = random_model(kind)
    estimator, network = Estimator.load("go1", model), latency.NETWORKS[name](model)
    for sample in islice(stream(log), 40):
        velocity, std = estimator.update(sample).predicted
        expected = network(sample)
        np.testing.assert_allclose(velocity, expected[0], atol=1e-4)
        np.testing.assert_allclose(np.log(std), expected[1], atol=1e-4)


def test_the_filter_behind_a_rival_takes_its_velocity(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    filters = []

    class Watched(rivals.InvariantEKF):
        def __init__(self) -> None:
            super().__init__()
            filters.append(self)

    monkeypatch.setattr(rivals, "InvariantEKF", Watched)
    # A standard deviation so small that the filter follows, though it inflates that of a network.
    said = np.array([0.3, -0.2, 0.1]), np.full(3, -10.0)
    step = rivals.with_filter(lambda sample: said, 500.0)
    for sample in islice(stream(log), 20):
        step(sample)
    np.testing.assert_allclose(filters[0].vel_b, said[0], atol=0.02)


def test_gtsam_really_works_in_its_step(log: Log) -> None:
    needs.package("gtsam")
    filter_, measurements = rivals.gtsam_filter()
    before = filter_.covariance().copy()
    filter_.predict(log.gyro[0], log.accel[0], 0.002)
    filter_.processContacts(measurements)
    assert np.abs(filter_.covariance() - before).max() > 1e-3
    rivals.gtsam_step(500.0)(next(stream(log)))


# The report


def test_what_cannot_run_is_left_out_with_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "model_names", lambda: ["gait-0"])
    chosen, left_out = available()
    assert chosen == ["gait", "iekf", "iekf-sr"]
    assert [text.split()[0] for text in left_out] == ["gait-flat", "nmn", "gait-legs"]
    assert available(["iekf"]) == (["iekf"], [])
    with pytest.raises(GaitError, match="unknown method 'gate': choose one of gait, gait-flat"):
        available(["gate"])


def report(monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...] = ()) -> dict[str, Row]:
    """All rows of a report, with starts made up and the modules named gone."""
    module = rivals.module_of

    def find(name: str) -> object:
        if name in gone:
            raise rivals.MissingRivalError(f"{name} is not installed")
        return module(name)

    monkeypatch.setattr(rivals, "module_of", find)
    monkeypatch.setattr(latency, "_starts", lambda: [Row("gait.start_s", 0.5, "s"), Row("gait.memory_mb", 200.0, "MB")])
    monkeypatch.setattr(latency, "model_names", lambda: ["gait-0"])
    return {row.name: row for row in latency.latency_report(seconds=0.01)}


def test_the_report_names_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "onnx", "onnxruntime", "gtsam"):
        needs.package(name)
    found = report(monkeypatch)
    ways = ["core", "torch_eager", "torch_jit", "onnxruntime"]
    expected = {f"gait.{way}.step_us" for way in ways}
    expected |= {f"gait.{way}.paced_{p}_us" for way in ("core", "torch_eager", "onnxruntime") for p in ("p50", "p99")}
    expected |= {"iekf.core.step_us", "iekf.gtsam.step_us", "iekf-sr.core.step_us"}
    expected |= {"gait.torch_eager.ratio", "gait.onnxruntime.ratio", "iekf.gtsam.ratio"}
    expected |= {f"{method}.core.kernel_us" for method in ("gait", "iekf", "iekf-sr")}
    expected |= {"gait.run.samples_per_second", "gait.memory_mb"}
    expected |= {"gait.start_s", "load_average", "left_out"}
    assert set(found) == expected
    for method, rival in (("gait", "torch_eager"), ("gait", "onnxruntime"), ("iekf", "gtsam")):
        ratio = found[f"{method}.{rival}.step_us"].value / found[f"{method}.core.step_us"].value  # type: ignore[operator]
        assert found[f"{method}.{rival}.ratio"].value == pytest.approx(ratio)
    assert found["gait.memory_mb"] == Row("gait.memory_mb", 200.0, "MB")


def test_rivals_that_are_not_installed_are_left_out_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    found = report(monkeypatch, gone=("torch", "onnxruntime", "gtsam"))
    assert not [name for name in found if "torch" in name or "onnx" in name or "gtsam" in name]
    note = str(found["left_out"].value)
    for rival in ("gait.torch_eager", "gait.torch_jit", "gait.onnxruntime", "iekf.gtsam"):
        assert f"{rival} (" in note
    assert {"gait.core.step_us", "gait.core.paced_p99_us", "gait.core.kernel_us"} <= set(found)


def test_the_section_holds_every_method_and_the_machine() -> None:
    import latency as benchmark  # type: ignore[import-not-found]

    assert benchmark.__file__ != latency.__file__
    rows = [
        Row("gait.core.step_us", 15.04, "us"), Row("gait.torch_eager.step_us", 1234.5, "us"),
        Row("gait.core.paced_p50_us", 40.0, "us"), Row("gait.core.paced_p99_us", 90.0, "us"),
        Row("iekf.core.step_us", 30.0, "us"), Row("iekf.gtsam.step_us", 40.0, "us"),
        Row("gait.core.kernel_us", 8.0, "us"), Row("gait.run.samples_per_second", 123456.7, "1/s"),
        Row("gait.start_s", 0.25, "s"), Row("gait.memory_mb", 200.0, "MB"), Row("load_average", 0.5, "-"),
        Row("left_out", "nmn (no weights)", "-"),
    ]  # fmt: skip
    text = benchmark.section(rows)
    assert "| median time of a step, us | `gait` | `iekf` |" in text
    assert "| `Estimator.update` | 15.0 | 30.0 |" in text and "| torch, then our filter | 1234 |  |" in text
    assert "| `Estimator.update` | 40.0 | 90.0 |" in text
    words = " ".join(text.split())
    assert "| in C: the loop of `run`, or the exported file | 8.0 |  |" in text
    assert "does 123,457 samples a second" in words
    assert "first state after 0.25 s, and has grown" in words and "load average of 0.5" in words
    assert max(map(len, text.splitlines())) <= 120


# The verbs


def test_bench_latency_refuses_what_makes_no_sense(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "latency", "--methods", "gate"]) == 1
    assert "unknown method 'gate'" in capsys.readouterr().err
    assert main(["bench", "latency", "--seconds-per-rival", "0"]) == 1
    assert "give more than 0" in capsys.readouterr().err


def test_bench_latency_prints_rows(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_starts", lambda: [Row("gait.start_s", 0.5, "s"), Row("gait.memory_mb", 200.0, "MB")])
    assert main(["bench", "latency", "--methods", "iekf-sr", "--seconds-per-rival", "0.01", "--json"]) == 0
    names = [row["name"] for row in json.loads(capsys.readouterr().out)["rows"]]
    assert names == ["iekf-sr.core.step_us", "iekf-sr.core.kernel_us", "load_average"]


@pytest.mark.parametrize("kind", ["gait", "gait-flat", "nmn"])
def test_the_rival_in_torch_is_the_network(kind: str) -> None:
    model = random_model(kind)
    net, step = network_of(model), torch_step(model)
    inputs = random_inputs(model.architecture, 1, 60)
    state = step.start
    with torch.no_grad():
        expected = net.plain(inputs)  # type: ignore[operator]
        for k in range(60):
            velocity, log_std, *state = step(inputs[0, k], *state)
            assert torch.allclose(velocity, expected.velocity[0, k], atol=1e-5), k
            assert torch.allclose(log_std, expected.log_std[0, k], atol=1e-5), k
