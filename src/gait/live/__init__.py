"""A robot that runs: messages in, odometry out. Sources, sinks, and the loop between them; see docs/live.md."""

PACKAGES = {"go2": "unitree_go", "g1": "unitree_hg"}
"""Messages of Unitree's robots over DDS, by the name of the source."""
