"""Policies and scenes that tests write: they need neither downloads nor learning."""

from collections.abc import Mapping
from pathlib import Path

import needs
import numpy as np

from gait import Robot
from gait.sim.settings import EpisodeConfig, PolicyFiles
from gait.sim.world import build_spec

TABLE = """
<mujoco model="table on four feet">
  <compiler angle="radian" autolimits="true" meshdir="meshes"/>
  <default>
    <geom contype="0" conaffinity="1"/>
    <position kp="60" forcerange="-40 40"/>
    <joint damping="2" armature="0.01" axis="0 1 0" range="-1 1"/>
  </default>
  <asset><mesh name="shell" file="shell.stl"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1" contype="1" conaffinity="0" friction="0.6"/>
    <body name="top" pos="0 0 0.4">
      <freejoint/>
      <inertial pos="0 0 0" mass="8" diaginertia="0.1 0.1 0.1"/>
      <geom type="mesh" mesh="shell" contype="0" conaffinity="0"/>
      <site name="imu" pos="0.1 0.02 -0.03" euler="0 0 0.5"/>
      {legs}
    </body>
  </worldbody>
  {contact}
  <actuator>{actuators}</actuator>
  <keyframe><key name="rest" qpos="0 0 0.4 1 0 0 0 0.1 0.1 -0.1 -0.1"/></keyframe>
</mujoco>
"""
LEGS = {"a": (0.2, 0.15), "b": (0.2, -0.15), "c": (-0.2, 0.15), "d": (-0.2, -0.15)}
OBSERVATION = """
rate: 50
imu: imu
feet: {a: a_foot, b: b_foot, c: c_foot, d: d_foot}
pose: rest
action_scale: 0.5
terms: [base_velocity, gyro, projected_gravity, command, joint_positions, joint_velocities, last_action]
"""
SIZE = 24
"""Of that observation."""


def write_table(folder: Path, paired: bool = False) -> Path:
    """A table whose four legs swing, with a mesh that is missing; `paired` feet meet the floor in contact pairs."""
    off = ' conaffinity="0"' if paired else ""
    legs = "".join(
        f'<body name="{name}_leg" pos="{x} {y} 0"><inertial pos="0 0 -0.2" mass="0.5" diaginertia="0.01 0.01 0.01"/>'
        f'<joint name="{name}_joint"/><geom name="{name}_foot" type="sphere" size="0.03" pos="0 0 -0.3"{off}/></body>'
        for name, (x, y) in LEGS.items()
    )
    pairs = "".join(f'<pair geom1="floor" geom2="{name}_foot" friction="0.6 0.6"/>' for name in LEGS) if paired else ""
    actuators = "".join(f'<position name="{name}" joint="{name}_joint"/>' for name in LEGS)
    path = folder / "table.xml"
    path.write_text(TABLE.format(legs=legs, contact=f"<contact>{pairs}</contact>", actuators=actuators))
    return path


def write_observation(folder: Path, text: str = OBSERVATION) -> Path:
    """The description of its policy."""
    path = folder / "table.yaml"
    path.write_text(text)
    return path


def write_go1(folder: Path) -> PolicyFiles:
    """A Go1 as gait describes it, written as MJCF, under a policy that stands."""
    robot = Robot.load("go1")
    spec = build_spec(robot, EpisodeConfig(terrain="flat"))
    spec.compile()
    (folder / "go1.xml").write_text(spec.to_xml())
    (folder / "go1.yaml").write_text(
        f"""
model: go1.xml
robot: go1
rate: 50
imu: imu
feet: {{{", ".join(f"{leg}: {leg}_foot" for leg in robot.leg_names)}}}
pose: {robot.q_stand.tolist()}
action_scale: 0.25
kp: {{.*_hip_joint: 40, .*_thigh_joint: 40, .*_calf_joint: 40}}
kd: 1.0
terms: [base_velocity, gyro, projected_gravity, command, joint_positions, joint_velocities, last_action]
"""
    )
    policy = write_policy(folder / "stand.onnx", np.zeros((48, 12)), np.zeros(12))
    return PolicyFiles(str(policy), observation=str(folder / "go1.yaml"))


def write_policy(path: Path, weights: np.ndarray, bias: np.ndarray, metadata: Mapping[str, str] | None = None) -> Path:
    """A policy whose action is `observation @ weights + bias`."""
    onnx = needs.package("onnx")
    helper, array = onnx.helper, onnx.numpy_helper
    size, count = weights.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["y"]), helper.make_node("Add", ["y", "b"], ["actions"])],
        "policy",
        [helper.make_tensor_value_info("obs", onnx.TensorProto.FLOAT, [1, size])],
        [helper.make_tensor_value_info("actions", onnx.TensorProto.FLOAT, [1, count])],
        [array.from_array(weights.astype(np.float32), "w"), array.from_array(bias.astype(np.float32)[None], "b")],
    )
    _save(graph, path, metadata)
    return path


def write_recurrent_policy(path: Path, size: int, count: int) -> Path:
    """A policy that counts its steps: its actions are 0.01, 0.02 and so on."""
    onnx = needs.package("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    one = onnx.numpy_helper.from_array(np.full((1, count), 0.01, dtype=np.float32), "one")
    infos = {name: helper.make_tensor_value_info(name, kind, [1, count]) for name in ("h_in", "h_out", "actions")}
    observation = helper.make_tensor_value_info("obs", kind, [1, size])
    nodes = [helper.make_node("Add", ["h_in", "one"], ["h_out"]), helper.make_node("Identity", ["h_out"], ["actions"])]
    graph = helper.make_graph(nodes, "p", [observation, infos["h_in"]], [infos["actions"], infos["h_out"]], [one])
    _save(graph, path)
    return path


def _save(graph: object, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    onnx = needs.package("onnx")
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.helper.set_model_props(model, dict(metadata or {}))
    onnx.save(model, path)
