"""What separates a log from the simulator: its sensors and legs against ground truth, beside training data and twin."""
