"""`gait-legs` in C: its layers, what it has to know of the robot, and how legs are weighed."""

from __future__ import annotations

import numpy as np

from gait.arrays import Array
from gait.export.c_text import NO_WORDS, CNetwork, blocks, defines, doubles, enum, floats, pad, padded, plain
from gait.nets.architecture import LegsArchitecture
from gait.nets.leg_features import HASTE, RATES, SHARED, SMOOTHING, body_of
from gait.nets.model import Model
from gait.parameters import Options
from gait.robot import Robot
from gait.runtime.leg_buffers import TAU_MARGIN
from gait.runtime.leg_fusion import INSTANT, LEAST, TURNING
from gait.runtime.leg_pack import leg_parts
from gait.runtime.samples import Limits, bounds_of

_TORQUES = """/* Whether tau is read, or q_des in its place; where it is not, both may be null pointers. */
#define GAIT_READS_TORQUES {reads}
"""
_NOTE = """ * - Torques of a leg that are missing (a null pointer, not finite, far beyond what a motor can): those that
 *   the robot's PD gains make of q_des. Without either, the last ones for {hold:g} s, and then the leg is hidden.
"""
_FIELDS = """    /* What each leg said: how fast base_link moves, and the logarithm of its standard deviation. */
    float leg_velocity[GAIT_LEGS][3];
    float leg_log_std[GAIT_LEGS][3];
"""
_MEMORY = "    double torque_left[GAIT_LEGS]; /* seconds for which the last torques of a leg may still be used */\n"


def leg_network(model: Model, robot: Robot) -> CNetwork:
    """A network on the legs of this robot, whose joints it knows by `Model.for_robot`."""
    a = model.architecture
    assert isinstance(a, LegsArchitecture)
    words = {
        **NO_WORDS,
        "tau_argument": ",\n                const double tau[GAIT_JOINTS]",
        "tau_name": ", tau",
        "torques_note": _TORQUES.format(reads=int(a.targets)),
        "legs_note": _NOTE.format(hold=Limits().hold) if a.targets else "",
        "leg_fields": _FIELDS,
        "leg_memory": _MEMORY if a.targets else "",
    }
    templates = (*(("legs_forces.c.in",) if a.targets else ()), "legs_features.c.in", "legs_network.c.in")
    constants = _robot(robot, a.targets) + _layers(model, a)
    return CNetwork(constants, templates, "legs_fusion.c.in", "legs_network.h.in", _state(a), words)


def _slots(a: LegsArchitecture) -> int:
    """Samples that reach back to the oldest frame."""
    return a.lags[-1] + 1


def _state(a: LegsArchitecture) -> str:
    joints, legs = 3 * a.legs, a.legs
    read = SHARED + legs * len(a.leg_columns)
    lines = [
        f"float sample[{_slots(a)}][{read}]; /* the last samples, in a ring */",
        "int now;   /* the newest of them */",
        "int begun; /* whether there is one */",
        f"unsigned char known[{legs}]; /* legs whose past is true, which are those of the last step */",
        f"double rates[{RATES}][3]; /* the last angular rates, newest first */",
        f"double dq[{joints}], ddq[{joints}]; /* joint velocities, and their smoothed rate of change */",
        *([f"double tau[{joints}]; /* smoothed torques */"] if a.targets else []),
        f"double feet[{legs}][3], haste[{legs}][3]; /* of the last step: places of the feet, and J ddq */",
    ]
    return "\n".join(f"    {line}" for line in lines)


def _robot(robot: Robot, forces: bool) -> str:
    options, limits, body = Options(), Limits(), body_of(robot)
    bounds = bounds_of(robot, limits, options.max_gap, False)
    values = {
        "FOOT_RADIUS": body.foot_radius,
        "LEG_LENGTH": body.leg_length,
        "SMOOTHING": SMOOTHING,
        "JOINT_DELAY": body.delay,
        # Factors on variances: of what legs claim, of a single sample, of the delay's uncertainty, of turning.
        "LEG_FACTOR": options.leg_inflation**2,
        "INSTANT_FACTOR": INSTANT**2,
        "DELAY_FACTOR": (options.joint_delay_std / INSTANT) ** 2,
        "TURNING_ALWAYS": TURNING[0] ** 2,
        "TURNING_BY_RATE": TURNING[1] ** 2,
        "TURNING_BY_CHANGE": TURNING[2] ** 2,
        "LEG_GUARD": options.leg_guard**2,
        "LEAST_TURNING": LEAST,
    }
    arrays = {
        "OFFSETS": body.offsets,
        "SIGNS": body.signs,
        "JOINT_LOWER": bounds.lower,
        "JOINT_UPPER": bounds.upper,
        "JOINT_SPEED": bounds.speed,
    }
    if forces:
        values |= {"WEIGHT": body.weight, "TORQUE_MARGIN": TAU_MARGIN, "TORQUE_HOLD": limits.hold}
        arrays |= {"INERTIAL": body.inertial, "ARMATURE": body.armature}
        arrays |= {"KP": robot.kp, "KD": robot.kd, "TORQUE_LIMIT": robot.torque_limit}
    text = f"/* Legs of {plain(robot.name)}: links, joints, drives; and how far legs are believed. */\n"
    return text + defines(values) + "".join(doubles(name, array) for name, array in arrays.items())


def _layers(model: Model, a: LegsArchitecture) -> str:
    p = leg_parts(model)
    hidden, layer, looks, columns = padded(a.hidden), padded(a.mlp), padded(3 * a.attention_width), a.leg_columns
    sizes = {
        "SLOTS": _slots(a),
        "FRAMES": a.frames,
        "STRIDE": a.stride,
        "OWN": len(columns),
        "OWN_FEATURES": HASTE,
        "RATES": RATES,
        "HIDDEN": hidden,
        "LAYER": layer,
        "OUTPUTS": len(p.output),
    }
    parts = [f"#define ATTENTION {a.attention_width}\n", enum(sizes)]
    if a.attention_width:
        look = p.look.reshape(3 * a.attention_width, -1)
        parts += [
            enum({"LOOKS": looks, "HEADS": a.heads, "HEAD_WIDTH": a.head_width}),
            *_layer("look", look, looks, hidden),
            floats("found_weight", blocks(_padded(p.mix[:, 1 + a.hidden :], layer, a.attention_width))),
        ]
    parts += [
        f"static const unsigned char own_of[{len(columns)}] = {{{', '.join(map(str, columns))}}};\n",
        floats("frame_bias", _padded(p.shared[:, :1], hidden, 1).ravel()),
        floats("shared_weight", blocks(_padded(p.shared[:, 1:], hidden, SHARED * a.frames))),
        floats("own_weight", blocks(_padded(p.own, hidden, p.own.shape[1]))),
        *_layer("hidden", p.hidden, hidden, hidden),
        *_layer("mix", p.mix[:, : 1 + a.hidden], layer, hidden),
        floats("output_weight", _padded(p.output[:, 1:].T, layer, len(p.output))),
        floats("output_bias", p.output[:, 0]),
    ]
    return "".join(parts)


def _layer(name: str, layer: Array, outputs: int, inputs: int) -> tuple[str, str]:
    """Offset and matrix that stand side by side."""
    weight = floats(f"{name}_weight", blocks(_padded(layer[:, 1:], outputs, inputs)))
    return floats(f"{name}_bias", _padded(layer[:, :1], outputs, 1).ravel()), weight


def _padded(matrix: Array, rows: int, columns: int) -> Array:
    """Zeros at the end of both axes, so that the padding of what comes in says nothing."""
    return np.pad(pad(matrix, columns), ((0, rows - len(matrix)), (0, 0)))
