"""A simulated robot that walks: worlds, gaits, the walking controller and episodes."""
