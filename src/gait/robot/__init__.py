"""Robots: one YAML file each, or a URDF or MJCF, and the kinematics made from it."""

from gait.robot.bare import BareRobot
from gait.robot.robot import Robot, Shapes, inertial_rows, robot_names, shipped_name
from gait.robot.serial_chain import Chain, Foot, Link, combined

__all__ = [
    "BareRobot", "Chain", "Foot", "Link", "Robot", "Shapes", "combined", "inertial_rows", "robot_names", "shipped_name",
]  # fmt: skip
