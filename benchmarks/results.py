"""The benchmark's tables and figures for docs/results.md.

    python benchmarks/results.py             # run, and print the tables
    python benchmarks/results.py --write     # and put them into the page, figures into docs/images

The same as `gait bench tables`, whose numbers they are.
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


def page(bench: Bench) -> dict[str, str]:
    """The text of each section of the page."""
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
    return texts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/results.md")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    bench = run_bench(workers=args.workers, progress=lambda what, share: print(f"{share:4.0%} {what}", flush=True))
    texts = page(bench)
    if not args.write:
        print("\n\n".join(texts.values()))
        return
    for name, text in texts.items():
        write_section(name, text, PAGE)
    OUT.mkdir(parents=True, exist_ok=True)
    write_bench(bench, OUT, {"command": "python benchmarks/results.py"})
    for name in FIGURES:
        shutil.copyfile(OUT / "figures" / f"{name}.png", DOCS / "images" / f"results-{name}.png")


if __name__ == "__main__":
    main()
