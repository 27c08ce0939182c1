"""The command line: find the verb, parse, run, print. Everything a verb does is in `gait.commands`.

Only the module of the chosen verb is imported, so help is quick however many verbs there are and whatever they need.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from gait._version import __version__
from gait.commands import MODULES, VERBS, Outcome, wrapped
from gait.errors import EXTRAS, GaitError, need_extra
from gait.type_check import light_type_checks

USAGE = 2
"""Exit code for a command line that cannot be understood."""
FAILED = 1
"""Exit code for bad input."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: the words after `gait`; those of the process by default.

    Returns:
        The exit code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The name of a file may hold bytes that are no letters; they must not stop us from printing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _dispatch(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
        return code
    except GaitError as error:
        print(f"gait: {' '.join(str(error).split())}", file=sys.stderr)
        return FAILED
    except ModuleNotFoundError as error:
        if (extra := EXTRAS.get((error.name or "").partition(".")[0])) is None:
            raise
        print(f"gait: {need_extra(str(error.name), extra)}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`gait info | head`). Python would complain again when it closes the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _dispatch(args: list[str]) -> int:
    verb = args[0] if args else ""
    if verb in VERBS:
        _run(verb, args[1:])
        return 0
    if verb in ("-h", "--help", "help"):
        print(_help())
        return 0
    if verb == "--version":
        print(f"gait {__version__}")
        return 0
    if not verb:
        print(_help(), file=sys.stderr)
        return USAGE
    near = difflib.get_close_matches(verb, VERBS, n=1)
    hint = f"did you mean `gait {near[0]}`?" if near else "`gait --help` lists the verbs"
    print(f"gait: there is no verb '{verb}': {hint}", file=sys.stderr)
    return USAGE


def _run(verb: str, args: list[str]) -> None:
    import tyro

    module = importlib.import_module(f"gait.commands.{MODULES.get(verb, verb)}")
    parsed, page = getattr(module, f"{verb.capitalize()}Options"), _Page()
    try:
        with redirect_stdout(page), light_type_checks():
            options: Any = tyro.cli(
                parsed,
                prog=f"gait {verb}",
                description=_MARK,
                args=args,
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.PositionalMetavarFromFieldName),
            )
    finally:
        # What follows the kind of value stays in its column.
        text = re.sub(r" +$", "", _OPTIONAL.sub(r"\1       ", _OFF.sub("", page.getvalue())), flags=re.MULTILINE)
        print(text.replace(_MARK, _explained(parsed.__doc__ or "")), end="")
    outcome: Outcome = module.run(options)
    if outcome.wrote is not None:
        from gait.io.atomic import folder_of_run, point_latest

        # Only now: a run that failed, or was stopped, is not the latest one.
        if (folder := folder_of_run(Path(outcome.wrote), verb)) is not None:
            point_latest(folder)
    if options.json:
        from gait.rows import rows_to_json

        print(rows_to_json(outcome.rows))
    else:
        _print(outcome)
    if outcome.error:
        raise GaitError(outcome.error)


_MARK = "DESCRIPTION-OF-THE-VERB"
_GAP = r"(?:\s|\x1b\[[0-9;]*m)*"
_OFF = re.compile(rf"{_GAP}\(default:{_GAP}(?:None|False|''|){_GAP}\)")
_OPTIONAL = re.compile(r"\{None\}\|(\{[^}]*\}|\S*)")
"""What the parser adds to options that are off unless they are given; it may stand in two lines, and in colour."""


class _Page(io.StringIO):
    """The help that the parser prints, in colour where the terminal has it, without boxes, which hinder a pipe."""

    encoding = "ascii"

    def isatty(self) -> bool:
        return sys.__stdout__ is not None and sys.__stdout__.isatty()


def _explained(text: str) -> str:
    """What a verb does, in lines that fit the terminal: the parser wraps the help of options alone."""
    width = min(shutil.get_terminal_size().columns, 100)
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(textwrap.fill(" ".join(one.split()), width, break_on_hyphens=False) for one in paragraphs)


def _print(outcome: Outcome) -> None:
    from rich.console import Console

    from gait.report.table import rows_to_table

    console = Console(highlight=False)
    # Printed by us, since rich has a mind of its own about readers that leave early and about wrapping a path.
    with console.capture() as printed:
        if outcome.text:
            console.print(outcome.text, markup=False, soft_wrap=True)
        elif outcome.tables:
            from gait.report.table import terminal

            for table in outcome.tables:
                console.print(terminal(table))
        else:
            # What the sanity checks found stands in words below the table.
            rows = [row for row in outcome.rows if not row.name.rpartition(".")[2].startswith("check_")]
            console.print(rows_to_table(rows))
    if outcome.title:
        print(outcome.title)
    print(printed.get(), end="")
    for line in wrapped(outcome.notes):
        print(line)
    if outcome.wrote is not None:
        print(f"wrote {outcome.wrote}")
    if outcome.next:
        print(f"next: {outcome.next}")


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:{width}}  {summary}" for name, summary in VERBS.items())
    return (
        "usage: gait VERB [options]\n\n"
        "Velocity and pose of a legged robot from its IMU and joint encoders.\n\n"
        f"verbs:\n{verbs}\n\n"
        "`gait VERB --help` explains a verb; every verb takes --json.\n`gait --version` prints the version."
    )
