"""See that the wheel and the sdist in a folder hold what they should: `python tools/check_dist.py dist`.

A wheel holds exactly the files of `src/gait` that Git knows, so that nothing is forgotten and nothing slips in, and the
C core: its sources, for the export, and its libraries.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = (
    "gait/py.typed", "gait/robot/go1.yaml", "gait/samples/go1_trot.mcap", "gait/weights/gait-0.safetensors",
    "gait/_core_", "gait/core_sources/", "gait/docs/", "gait/configs/",
)  # fmt: skip
"""Files, and folders with something in them, that no release can do without, whatever Git says."""


def problems(wheel: set[str], sdist: set[str], tracked: set[str]) -> list[str]:
    """What is wrong with the files of a wheel and of an sdist, one sentence each.

    Args:
        wheel: its files.
        sdist: its files, without the folder they all lie in.
        tracked: the files that Git knows.
    """
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/gait/")}
    package |= {name.replace("core/", "gait/core_sources/", 1) for name in tracked if name.startswith("core/")}
    package |= {f"gait/{name}" for name in tracked if re.fullmatch(r"docs/[^/]+\.md|configs/[^/]+\.yaml", name)}
    inside = {name for name in wheel if ".dist-info/" not in name}
    package |= {name for name in inside if name.startswith("gait/_core_") and name.endswith(".so")}
    found = [f"the wheel lacks {name}" for name in sorted(package - inside)]
    found += [
        f"the wheel has {name}, which Git does not know: commit it or take it away" for name in sorted(inside - package)
    ]
    found += [f"the wheel lacks {name}" for name in NEEDED if not any(file.startswith(name) for file in inside)]
    found += [
        f"the sdist lacks {name}" for name in sorted(tracked - sdist) if name.startswith(("src/", "core/", "tests/"))
    ]
    return found + [
        f"the sdist has {name}, which Git does not know: commit it or take it away"
        for name in sorted(sdist - tracked - {"PKG-INFO"})
    ]


def main(folder: Path) -> int:
    wheels, sdists = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sdists) != 1:
        print(f"{folder} must hold one wheel and one sdist, not {len(wheels)} and {len(sdists)}", file=sys.stderr)
        return 1
    with zipfile.ZipFile(wheels[0]) as archive:
        wheel = set(archive.namelist())
    with tarfile.open(sdists[0]) as archive:
        sdist = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        print("git is not installed, which knows what a release holds: run `apt-get install git`", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"git does not say what a release holds: {error.stderr.strip()}", file=sys.stderr)
        return 1
    found = problems(wheel, sdist, set(filter(None, listed.stdout.split("\0"))))
    for sentence in found:
        print(sentence, file=sys.stderr)
    for path in (*wheels, *sdists):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
