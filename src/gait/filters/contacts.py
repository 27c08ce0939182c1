"""Which feet stand on the ground, guessed from joint torques, and which of them slip. Compiled.

A leg obeys tau = tau_free - J' f, where tau_free is what its motion and its weight would take without the ground, so
the ground force on the foot follows from the joint torques through the leg Jacobian. Leaving the motion out and taking
only the weight off costs 4 to 8 % of the contacts on a trotting Go1: a swinging leg then seems to push.
"""

from __future__ import annotations

import math

from gait._compile import kernel
from gait.arrays import Array, BoolArray

_A1 = "float64[::1]"
_A2 = "float64[:, ::1]"


@kernel(f"boolean({_A2}, {_A1}, {_A1}, {_A1})")
def ground_force(jac: Array, tau: Array, tau_free: Array, force: Array) -> bool:
    """Force of the ground on the foot (3,) in the base frame: -J'^-1 (tau - tau_free), written into `force`.

    Returns:
        False, with a force of zero, where the leg is stretched out straight and torques say nothing.
    """
    a, b, c = jac[0, 0], jac[1, 0], jac[2, 0]
    d, e, f = jac[0, 1], jac[1, 1], jac[2, 1]
    g, h, i = jac[0, 2], jac[1, 2], jac[2, 2]
    t0, t1, t2 = tau_free[0] - tau[0], tau_free[1] - tau[1], tau_free[2] - tau[2]
    det = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
    if not (abs(det) > 1e-5 and math.isfinite(t0 + t1 + t2)):
        force[0] = force[1] = force[2] = 0.0
        return False
    force[0] = ((e * i - f * h) * t0 + (c * h - b * i) * t1 + (b * f - c * e) * t2) / det
    force[1] = ((f * g - d * i) * t0 + (a * i - c * g) * t1 + (c * d - a * f) * t2) / det
    force[2] = ((d * h - e * g) * t0 + (b * g - a * h) * t1 + (a * e - b * d) * t2) / det
    return True


@kernel("boolean(float64, float64, float64, float64, float64, float64, int64, boolean[::1], float64[::1])")
def update_contact(
    force: float,
    touch_down: float,
    lift_off: float,
    touch_down_dwell: float,
    lift_off_dwell: float,
    dt: float,
    leg: int,
    contact: BoolArray,
    waiting: Array,
) -> bool:
    """Hysteresis with a minimum dwell for one leg.

    Args:
        force: normal force, in the unit of the thresholds.
        touch_down: force that starts a contact.
        lift_off: force below which it ends.
        touch_down_dwell: seconds the force must stay above before a contact starts.
        lift_off_dwell: seconds it must stay below before it ends.
        dt: seconds since the last call.
        leg: which leg.
        contact: state of every leg (L,), changed in place.
        waiting: seconds each leg has been on the other side so far (L,), changed in place.

    Returns:
        The state of the leg.
    """
    other = force < lift_off if contact[leg] else force > touch_down
    waiting[leg] = waiting[leg] + dt if other else 0.0
    # Half a step of tolerance: stamps jitter, and a dwell of five samples must not become six.
    if other and waiting[leg] > (lift_off_dwell if contact[leg] else touch_down_dwell) - 0.5 * dt:
        contact[leg] = not contact[leg]
        waiting[leg] = 0.0
    return bool(contact[leg])
