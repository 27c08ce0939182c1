"""Logs that come with the package."""

from pathlib import Path

SAMPLE = Path(__file__).with_name("go1_trot.mcap")
"""20 s of the benchmark twin of a Go1 in trot on rubber, with truth."""
