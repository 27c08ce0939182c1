"""The estimator in plain numpy, written to be read: one line an equation, and what tests hold the core against.

Read `filter.py` first, then `velocity_aided.py` (the paper's method, and gait-legs) or `contact_aided.py` (iekf and
iekf-sr); `disagreement.py` is about measurements that contradict the predicted state. Names say frames: `_w` world,
`_b` base_link, `_i` IMU; `R_bi` is the mounting rotation and `p_bi` the lever arm of the IMU in base_link. Every step
here takes an admitted sample: finite, plausible, within the sensors' range and later than the last.
"""
