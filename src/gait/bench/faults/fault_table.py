"""Results of `gait bench faults` as text of 80 columns: one row a fault."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gait.bench.faults.fault_scores import FLAGGED, RECOVERED, SHARE, FaultScore, min_share
from gait.bench.faults.run_faults import FaultRow

LETTERS = {
    "raises": "x", "nan": "n", "cov": "c", "vel": "v", "yaw": "y", "pos": "p", "flag": "f", "alarm": "a", "slow": "s"
}  # fmt: skip
"""Criteria as letters, for a table of several methods."""
HEADING = f"{'fault':<18}{'during':>6}{'after':>6}{'right':>6}{'flag':>6}{'vel':>5}{'yaw':>4}{'pos':>4}"


def figure(value: float) -> str:
    """A number in five characters; `-` for none, `never` for infinity."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "never"
    return f"{value:.2f}" if value < 99.995 else f"{value:.0f}" if value < 99999.0 else "huge"


def percent(share: float) -> str:
    """A share, rounded down: 100 is all of it."""
    return f"{math.floor(100.0 * share)}"


def score_line(score: FaultScore) -> str:
    """The figures of one method under one fault."""
    numbers = (score.worst_during, score.worst_after, score.recovery, score.detection)
    shares = [min_share(score.within_during[name], score.within_after[name]) for name in score.within_during]
    text = "".join(f"{figure(one):>6}" for one in numbers)
    verdict = f"({score.verdict})" if score.fault.hidden and score.failures else score.verdict
    return f"{score.fault.id:<18}{text}" + "".join(f"{percent(one):>4}" for one in shares).rjust(13) + f"  {verdict}"


def figure_lines(rows: Sequence[FaultRow], method: str) -> list[str]:
    """One method on one log, in figures: largest velocity error in m/s, times in s, shares within 3 std in %."""
    lines = [f"{row.fault.id:<18}  {row.skipped}" if row.skipped else score_line(row.scores[method]) for row in rows]
    return [f"{HEADING}  verdict", "─" * 79, *lines]


def letters(score: FaultScore) -> str:
    """A verdict in letters."""
    if score.refused:
        return "-"
    text = "".join(LETTERS[one] for one in score.failures) or "ok"
    return f"({text})" if score.fault.hidden and score.failures else text


def verdict_lines(rows: Sequence[FaultRow], methods: Sequence[str]) -> list[str]:
    """All methods on one log, in letters."""
    width = max(10, 1 + max(map(len, methods)))
    lines = [f"{'fault':<18}" + "".join(f"{method:>{width}}" for method in methods)]
    lines.append("─" * len(lines[0]))
    for row in rows:
        cells = [f"{letters(row.scores[method]):>{width}}" for method in methods] if row.scores else [row.skipped]
        lines.append(f"{row.fault.id:<18}" + "".join(cells))
    return lines


def tally(rows: Iterable[FaultRow], method: str) -> str:
    """How many faults a method passes, of those that can be told from the data."""
    scores = [row.scores[method] for row in rows if method in row.scores]
    told = [one for one in scores if not one.fault.hidden and not one.refused]
    passed = sum(not one.failures for one in told)
    clean = sum(bool(one.failures) and not one.caused for one in told)
    hidden = sum(bool(one.fault.hidden) for one in scores)
    more = f"; {clean} fail as the clean run does" if clean else ""
    more += f"; {hidden} cannot be told from the data" if hidden else ""
    return f"{method} passes {passed} of {len(told)} faults{more}"


def faults_text(rows: Sequence[FaultRow], methods: Sequence[str]) -> str:
    """The whole result for a terminal."""
    logs = list(dict.fromkeys(row.log for row in rows))
    lines: list[str] = []
    for log in logs:
        some = [row for row in rows if row.log == log]
        if len(methods) == 1:
            lines += [f"{methods[0]} on {log}: largest velocity error, m/s; times, s; within 3 std, %", ""]
            lines += [*figure_lines(some, methods[0]), ""]
        else:
            lines += [f"every method on {log}", "", *verdict_lines(some, methods), ""]
    if len(methods) > 1:
        lines.append("; ".join(f"{letter} {name}" for name, letter in LETTERS.items()))
    lines += [
        f"vel, yaw, pos: less than {SHARE:.0%} within 3 std; flag: not flagged within {FLAGGED:g} s;",
        f"slow: not right again within {RECOVERED:g} s; alarm: flagged though nothing is wrong;",
        "in brackets: cannot be told from the data",
    ]
    for log in logs:
        some = [row for row in rows if row.log == log]
        lines += [f"{log}: {tally(some, method)}" for method in methods]
    return "\n".join(lines)
