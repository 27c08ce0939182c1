"""A robot that runs: messages in, odometry out. Sources, sinks, and the loop between them; see docs/live.md."""
