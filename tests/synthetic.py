"""A walking Go1 made of formulas: smooth body motion, feet that roll on the ground without slipping, exact sensors."""

from dataclasses import dataclass

import numpy as np

from gait import Log, Robot, lie
from gait.robot import kinematics
from gait.robot.kinematics import leg_torque

RATE, FINE = 500, 2  # samples per second, integration steps per sample
UP = np.array([0.0, 0.0, 1.0])


def body(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Position and orientation of base_link: forward with sway, bob, and all three rotations."""
    p = np.array([0.5 * t + 0.01 * np.sin(9 * t), 0.02 * np.sin(5 * t), 0.29 + 0.006 * np.sin(14 * t)])
    turn = np.array([0.04 * np.sin(7 * t), 0.05 * np.sin(6 * t + 1), 0.1 * np.sin(0.8 * t)])
    return p, lie.so3_exp(turn)


def rates(t: float, h: float = 1e-5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity in the world, angular rate in the body, acceleration in the world, by central differences."""
    (pa, Ra), (p, _), (pb, Rb) = body(t - h), body(t), body(t + h)
    omega = lie.so3_log(np.ascontiguousarray(Ra.T @ Rb)) / (2 * h)
    return (pb - pa) / (2 * h), omega, (pa - 2 * p + pb) / h**2


@dataclass
class Leg:
    index: int
    q: np.ndarray
    standing: bool = False


def joint_rates(robot: Robot, leg: Leg, velocity_b: np.ndarray, omega: np.ndarray, up_b: np.ndarray) -> np.ndarray:
    """dq that moves the foot's centre so that the sphere rolls: v + w x p + J dq = r (w_calf(dq) x up)."""
    one = robot.offsets[leg.index], robot.signs[leg.index]
    foot, *columns = kinematics.leg_forward(*one, leg.q)
    jac = np.stack(columns, -1)
    rolling = np.empty((3, 4))
    for j in range(4):  # the calf's rate is affine in dq: probe it with zero and the unit vectors
        dq = np.zeros(3)
        if j:
            dq[j - 1] = 1.0
        rate = kinematics.calf_rate(one[1], leg.q, dq, omega)
        rolling[:, j] = robot.foot_radius * np.cross(rate, up_b)
    A = jac - (rolling[:, 1:] - rolling[:, :1])
    return np.linalg.solve(A, rolling[:, 0] - velocity_b - np.cross(omega, foot))


def free_torque(robot: Robot, leg: int, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray, up_b: np.ndarray) -> np.ndarray:
    """Torques of a leg that touches nothing."""
    one = robot.offsets[leg], robot.signs[leg], robot.leg_inertial[leg], robot.armature[3 * leg : 3 * leg + 3]
    return np.array(leg_torque(*one, q, dq, ddq, -9.81 * up_b))


def walking_log(seconds: float = 5.0, robot: Robot | None = None) -> Log:
    """A trot of 2.5 Hz with duty 0.6. Torques move the legs and hold the weight on the standing feet."""
    robot = robot or Robot.load("go1")
    count, dt = int(seconds * RATE), 1.0 / RATE
    legs = [Leg(i, robot.q_stand[3 * i : 3 * i + 3].copy()) for i in range(4)]
    offsets = np.array([0.0, 0.5, 0.5, 0.0])
    home = robot.feet(robot.q_stand)
    field = {name: [] for name in ("t", "gyro", "accel", "q", "dq", "tau", "contact", "pos_w", "quat_wb_wxyz", "vel_w")}
    last_q, last_dq = np.concatenate([leg.q for leg in legs]), np.zeros(12)
    arm = robot.imu_position
    for k in range(count):
        for n in range(FINE):
            now = (k - 1 + n / FINE) * dt
            h = dt / FINE
            p, R = body(now)
            v, omega, _ = rates(now)
            phase = (now * 2.5 + offsets) % 1.0
            for leg in legs:
                leg.standing = phase[leg.index] < 0.6
                if leg.standing:
                    middle = leg.q + 0.5 * h * joint_rates(robot, leg, R.T @ v, omega, R.T @ UP)
                    half = Leg(leg.index, middle)
                    _, R2 = body(now + 0.5 * h)
                    v2, omega2, _ = rates(now + 0.5 * h)
                    leg.q = leg.q + h * joint_rates(robot, half, R2.T @ v2, omega2, R2.T @ UP)
                else:
                    s = (phase[leg.index] - 0.6) / 0.4
                    goal = home[leg.index] + np.array([0.05 * np.cos(np.pi * (1 - s)), 0.0, 0.0])
                    goal[2] = robot.foot_radius - p[2] + 0.06 * np.sin(np.pi * s)
                    target = robot.inverse(robot.leg_names[leg.index], goal)
                    leg.q = leg.q + (target - leg.q) * min(1.0, 10 * h + 0.2 * s)
        t = k * dt
        p, R = body(t)
        v, omega, _ = rates(t)
        q = np.concatenate([leg.q for leg in legs])
        standing = np.array([leg.standing for leg in legs])
        # The IMU reports the mean over the sample that ends now: exact differences of its own motion.
        before, after = t - dt, t
        Rb, Ra = body(before)[1], body(after)[1]
        vb = rates(before)[0] + Rb @ np.cross(rates(before)[1], arm)
        va = rates(after)[0] + Ra @ np.cross(rates(after)[1], arm)
        turn = lie.so3_log(np.ascontiguousarray(Rb.T @ Ra))
        mean_force = np.linalg.solve(lie.so3_left_jacobian(turn), Rb.T @ ((va - vb) / dt - np.array([0, 0, -9.81])))
        _, jac = robot.forward(q)
        dq = np.zeros(12)
        tau = np.empty(12)
        for leg in legs:
            i = slice(3 * leg.index, 3 * leg.index + 3)
            dq[i] = joint_rates(robot, leg, R.T @ v, omega, R.T @ UP) if leg.standing else (q[i] - last_q[i]) / dt
            force = R.T @ UP * robot.mass * 9.81 / max(standing.sum(), 1) if leg.standing else np.zeros(3)
            tau[i] = free_torque(robot, leg.index, leg.q, dq[i], (dq[i] - last_dq[i]) / dt, R.T @ UP)
            tau[i] -= jac[leg.index].T @ force
        last_q, last_dq = q, dq
        row = (t, turn / dt, mean_force, q, dq, tau, standing, p, lie.quat_from_rotation(R), v)
        for name, value in zip(field, row, strict=True):
            field[name].append(value)
    return Log(**field, robot=robot, source="synthetic trot of formulas")
