"""Bipeds that walk, sway and squat to a plan, as humanoids with ZMP controllers do."""
