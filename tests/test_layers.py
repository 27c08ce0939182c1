"""The layers of the package: an import points to a lower layer, or stays inside its own part."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import gait

ROOT = Path(gait.__file__).parent
LAYERS = (
    ("_version", "arrays", "documents", "errors", "health", "read_options", "rows", "samples", "type_check"),
    ("lie", "moving_average", "quaternions"),
    ("binding", "methods", "robot"),
    ("log",),
    ("parameters", "sample_rows", "state"),
    ("core_config", "io"),
    ("external", "invariant_ekf", "nets"),
    ("engine", "reference"),
    ("python_step",),
    ("stepper",),
    ("estimator",),
    ("ground_drift", "joint_latency", "leg_compliance", "smoothed_feet"),
    ("batch", "fused_run", "metrics", "smoothing"),
    ("report",),
    ("calibrate", "export", "live", "sim"),
    ("train",),
    ("bench",),
    ("cluster",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
"""Modules and packages of `gait`, lowest first. Those of one layer do not import each other."""
EXCEPTIONS = {
    ("log", "io"): "Log.load, Log.save and their like: shortcuts, imported when they are called",
    ("robot", "sim"): "MJCF is read by MuJoCo, which the simulator imports in a way that works without drawing",
    ("nets", "reference"): "the step in torch takes its constants from the reference, which it follows line by line",
    ("io", "estimator"): "a recorder of live estimates reads a State",
}
"""Imports that point up, and why."""
HEIGHT = {part: height for height, parts in enumerate(LAYERS) for part in parts}


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker sees."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        yield from chain.from_iterable(map(runtime_nodes, node.orelse))
        return
    yield node
    yield from chain.from_iterable(map(runtime_nodes, ast.iter_child_nodes(node)))


def imported(path: Path) -> Iterator[str]:
    """The parts of `gait` that a file imports, at its top or inside a function."""
    for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "gait" and rest and rest.split(".")[0] in HEIGHT:
                yield rest.split(".")[0]


def files() -> Iterator[tuple[str, Path]]:
    """Every file of the package with the part it belongs to."""
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part != "__init__":
            yield part, path


def test_every_part_has_its_layer() -> None:
    assert {part for part, _ in files()} == set(HEIGHT)
    assert len(HEIGHT) == sum(map(len, LAYERS)), "a part is in one layer"


def test_imports_point_down() -> None:
    found = {(part, other): path for part, path in files() for other in imported(path) if other != part}
    up = {pair: path for pair, path in found.items() if HEIGHT[pair[1]] >= HEIGHT[pair[0]]}
    wrong = [f"{path.relative_to(ROOT)} imports gait.{other}" for (_, other), path in up.items()]
    assert set(up) == set(EXCEPTIONS), wrong


def test_reports_and_metrics_know_no_estimator() -> None:
    """They take a Log and a Trajectory of any source."""
    forbidden = {"binding", "engine", "reference", "estimator", "batch", "bench", "commands"}
    for part, path in files():
        if part in ("metrics", "report"):
            assert not forbidden & set(imported(path)), path


def test_no_name_is_used_twice() -> None:
    """Files and classes: one name, one meaning."""
    names = [path.name for _, path in files() if path.name != "__init__.py"]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for _, path in files()]
    names += [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    assert not {name for name in names if names.count(name) > 1}
