"""Files that come with the package: a sample log, pages of documentation, configurations."""

from pathlib import Path

SAMPLE = Path(__file__).with_name("go1_trot.mcap")
"""20 s of the benchmark twin of a Go1 in trot on rubber, with truth."""


def shipped(folder: str) -> Path:
    """A folder of the checkout that is inside the package once it is installed: `docs` or `configs`."""
    inside = Path(__file__).parents[1] / folder
    return inside if inside.is_dir() else Path(__file__).parents[3] / folder
