"""The folder of a run, and the commit of the code that made it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from gait.errors import GaitError


def new_folder(root: Path) -> Path:
    """`<root>/<stamp>`, made, with `<root>/latest` pointing to it."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for i in range(1000):
            folder = root / (stamp if i == 0 else f"{stamp}-{i}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            link = root / "latest"
            if link.is_symlink() or not link.exists():
                link.unlink(missing_ok=True)
                link.symlink_to(folder.name)
            return folder
    except OSError as error:
        raise GaitError(f"cannot make a folder in {root}: {(error.strerror or str(error)).lower()}") from None
    raise GaitError(f"cannot make a folder in {root}: name one with --out")


def commit() -> str:
    """The commit of this source tree, with `+` if files differ from it; `unknown` outside a git checkout."""
    here = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True, timeout=10)
        return done.stdout.strip()

    try:
        if not (Path(git("rev-parse", "--show-toplevel")) / "src/gait").is_dir():
            return "unknown"
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here)) else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"
