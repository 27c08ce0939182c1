"""Robots: one YAML file each, and the kinematics made from it."""

from gait.robot.bare import BareRobot
from gait.robot.robot import Link, Robot, Shapes, combined, robot_names

__all__ = ["BareRobot", "Link", "Robot", "Shapes", "combined", "robot_names"]
