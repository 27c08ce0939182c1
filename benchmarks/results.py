"""The benchmark's tables and figures for docs/results.md.

    python benchmarks/results.py                 # run on both versions of the test set, and print the tables
    python benchmarks/results.py --write         # and put them into the page, figures of version 1 into docs/images
    python benchmarks/results.py --twin 2 --policy go1_policy.onnx --write    # version 2 alone, with a policy's walks

The same as `gait bench tables --twin 1` and `--twin 2`, whose numbers they are. Without the policy its course is left
out.
"""

from __future__ import annotations

import argparse
import shutil

from sections import DOCS, paragraph, write_section

from gait.bench.paper_tables import difference_table
from gait.bench.run_tables import Bench, run_bench, verdict, write_bench
from gait.report import table as render
from gait.report.table import Table

PAGE = DOCS / "results.md"
OUT = DOCS.parent / "runs/bench/docs"
FIGURES = ("trot-to-bound", "attention-legs", "attention-pronk", "from-above", "slip-error", "calibration")


def section(table: Table) -> str:
    """A table with its title and note."""
    return f"**{render.title(table)}**\n\n{render.markdown(table)}\n\n{paragraph(table.note)}"


def page(bench: Bench, twin: int) -> dict[str, str]:
    """The text of each section of the page; those of version 2 are `twin2-...`, without what does not depend on it."""
    tables = {table.name: table for table in (*bench.tables, difference_table(bench.differences))}
    seeds = ", ".join(f"{method} {bench.study.seeds(method)}" for method in bench.study.methods)
    said = "\n".join(f"- {line}" for line in verdict(bench))
    groups = {
        "walks": ("walks",),
        "paper": ("table1", "table2", "table3", "table4"),
        "filter": ("table1_filter", "table2_filter"),
        "honest": ("calibration",),
        "differences": ("differences",),
        "cost": ("cost",),
    }
    texts = {
        name: "\n\n".join(section(tables[one]) for one in group if one in tables) for name, group in groups.items()
    }
    texts["differences"] = f"{said}\n\n{texts['differences']}"
    texts["walks"] += f"\n\nTest set `{bench.fingerprint[:16]}`; sets of weights: {seeds}."
    if twin == 1:
        return texts
    return {f"twin{twin}-{name}": text for name, text in texts.items() if name != "cost"}


def tell(what: str, share: float) -> None:
    """How far it is."""
    print(f"{share:4.0%} {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/results.md")
    parser.add_argument("--twin", type=int, choices=(1, 2), help="version of the test set; both by default")
    parser.add_argument("--policy", default="", help="ONNX file of the Go1 policy, for one more course of version 2")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    for twin in (args.twin,) if args.twin else (1, 2):
        bench = run_bench(workers=args.workers, progress=tell, twin=twin, policy=args.policy)
        texts = page(bench, twin)
        if not args.write:
            print("\n\n".join(texts.values()))
            continue
        for name, text in texts.items():
            write_section(name, text, PAGE)
        out = OUT / f"twin{twin}"
        out.mkdir(parents=True, exist_ok=True)
        write_bench(bench, out, {"command": f"python benchmarks/results.py --twin {twin}"})
        for name in FIGURES if twin == 1 else ():
            shutil.copyfile(out / "figures" / f"{name}.png", DOCS / "images" / f"results-{name}.png")


if __name__ == "__main__":
    main()
