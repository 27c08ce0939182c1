"""The walking controller: gait clock, footholds, model-predictive ground forces and joint targets."""
