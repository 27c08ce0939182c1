"""Faults injected one at a time: `gait bench faults`."""
