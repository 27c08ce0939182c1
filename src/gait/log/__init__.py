"""Log and Trajectory: named arrays on one clock, the table of their fields, and sanity checks."""
