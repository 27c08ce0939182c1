"""What runs on the robot: one step of network and filter, compiled, with neither torch nor allocation."""
