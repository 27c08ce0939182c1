"""The result of one sanity check of a log: what was measured, whether it can be, and the option that corrects it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CheckFinding:
    """One check."""

    name: str
    ok: bool
    words: str
    """What was found, and what to do about it if it is wrong."""
    fix: str = ""
    """Words of a command line that correct it, such as `--scale gyro=deg/s`; empty where there are none."""
    certain: bool = False
    """Whether nothing else can be the matter, so that `--fix` may correct it."""
    grave: bool = True
    """Whether numbers come out wrong unless it is corrected."""

    @property
    def corrected_words(self) -> str:
        """What was found, once `fix` has been applied: nothing is left to type."""
        return f"{self.words.removesuffix(_hint(self.fix))}; corrected as by {self.fix}" if self.fix else self.words


@dataclass(frozen=True)
class Problem:
    """One thing that may be wrong."""

    there: bool
    words: str
    fix: str = ""
    certain: bool = False


def verdict(name: str, measured: str, *problems: Problem) -> CheckFinding:
    """The first problem that is there, or else what was measured."""
    for one in problems:
        if one.there:
            return CheckFinding(name, False, one.words + _hint(one.fix), one.fix, one.certain)
    return CheckFinding(name, True, measured)


def _hint(fix: str) -> str:
    return f"; correct it with {fix}" if fix else ""
