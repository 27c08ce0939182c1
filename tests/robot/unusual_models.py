"""MJCF files written here that use what published ones seldom do."""

from __future__ import annotations

_LEG = """
<body name="{s}/thigh" pos="0 {y} -0.1">
  <joint name="{s}/hip_yaw" axis="0 0 1" range="-60 60" class="strong"/>
  <joint name="{s}/hip_roll" axis="1 0 0" pos="0 0 0.01" range="-40 40"/>
  <joint name="{s}/hip_pitch" range="-110 40" ref="5"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.05"/>
  <body name="{s}/shank" pos="0 0 -0.35" euler="10 0 5">
    <joint name="{s}/knee" range="0 140" stiffness="3" springref="20"/>
    <geom type="cylinder" fromto="0 0 0 0 0 -0.3" size="0.04"/>
    <body name="{s}/end" pos="0 0 -0.36">
      <joint name="{s}/pitch" range="-50 50" armature="0.03"/>
      {foot}
    </body>
  </body>
</body>"""
_FEET = {
    "capsules": """<geom type="capsule" fromto="-0.06 0.03 -0.05 0.12 0.03 -0.05" size="0.01"/>
      <geom type="capsule" fromto="-0.06 -0.03 -0.05 0.12 -0.03 -0.05" size="0.01"/>""",
    "spheres": "".join(
        f'<geom type="sphere" pos="{x} {y} -0.05" size="0.01"/>' for x in (-0.06, 0.03, 0.12) for y in (-0.03, 0.03)
    ),
    "boxes": """<geom type="box" pos="-0.02 0 -0.05" size="0.05 0.04 0.01"/>
      <geom type="box" pos="0.09 0 -0.05" size="0.04 0.04 0.01"/>""",
}


def biped(foot: str = "capsules", more: str = "", compiler: str = 'angle="degree" eulerseq="zyx"') -> str:
    """A biped without sites of feet, words for feet, inertials or keys, whose IMU is above a waist.

    Names have slashes, the free joint stands in a frame, hands collide, and angles are degrees.
    """
    legs = "".join(_LEG.format(s=s, y=y, foot=_FEET[foot]) for s, y in (("robot/l", 0.1), ("robot/r", -0.1)))
    arms = "".join(
        f'<body name="robot/{s}/arm" pos="0 {y} 0.4"><joint name="robot/{s}/shoulder"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03"/><body name="robot/{s}/hand" pos="0 0 -0.55">'
        f'<joint name="robot/{s}/wrist"/><geom type="sphere" size="0.05"/></body></body>'
        for s, y in (("l", 0.25), ("r", -0.25))
    )
    return f"""<mujoco model="two legs"><compiler {compiler}/>
<default><joint axis="0 1 0" damping="0.5"/><geom density="900"/>
  <default class="strong"><joint frictionloss="0.2" actuatorfrcrange="-80 80"/></default></default>
<worldbody><geom name="ground" type="plane" size="5 5 0.1"/>
  <frame pos="0 0 1" euler="30 0 0"><body name="robot/pelvis"><freejoint/>
    <geom type="box" size="0.08 0.12 0.06"/>{legs}
    <body name="robot/torso" pos="0 0 0.1"><joint name="robot/waist" axis="0 0 1" range="-90 90"/>
      <geom type="box" size="0.08 0.15 0.2" pos="0 0 0.2"/><site name="robot/sensor" pos="0.02 0 0.2" euler="90 0 0"/>
      {arms}</body></body></frame></worldbody>
<actuator><position joint="robot/l/knee" kp="90" kv="2"/><position joint="robot/r/knee" kp="90" kv="2"/></actuator>
<sensor><gyro site="robot/sensor"/><accelerometer site="robot/sensor"/></sensor>{more}</mujoco>"""


def rods(ball_in_leg: bool = False) -> str:
    """A biped whose ankles are moved by rods on ball joints, which close loops, and with springs in its shins."""
    hinge = '<joint name="{s}-tarsus" type="ball"/>' if ball_in_leg else '<joint name="{s}-tarsus" range="-2 2"/>'
    leg = """<body name="{s}-hip" pos="0 {y} 0"><joint name="{s}-hip-pitch" range="-2 2"/>
<geom type="sphere" size="0.05"/>
<body name="{s}-achilles-rod" pos="0 0.05 0"><joint name="{s}-achilles-rod" type="ball"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.01"/></body>
<body name="{s}-knee" pos="0 0 -0.1"><joint name="{s}-knee" range="-2 2"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.03"/>
<body name="{s}-shin" pos="0 0 -0.2"><joint name="{s}-shin" stiffness="1500"/>
<geom type="sphere" size="0.03"/>
<body name="{s}-tarsus" pos="0 0 -0.2">HINGE<geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.02"/>
  <body name="{s}-heel-spring" pos="-0.03 0 0"><joint name="{s}-heel-spring" stiffness="1200"/>
    <geom type="sphere" size="0.02"/></body>
  <body name="{s}-foot-crank" pos="0 0.03 -0.1"><joint name="{s}-foot-crank"/><geom type="sphere" size="0.02"/>
    <body name="{s}-plantar-rod" pos="-0.05 0 0"><joint name="{s}-plantar-rod"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.15" size="0.01"/></body></body>
  <body name="{s}-foot" pos="0 0 -0.25"><joint name="{s}-foot" range="-2 1"/>
    <geom type="capsule" fromto="-0.07 0 -0.02 0.09 0 -0.02" size="0.02"/></body>
</body></body></body></body>""".replace("HINGE", hinge)
    legs = "".join(leg.format(s=s, y=y) for s, y in (("left", 0.1), ("right", -0.1)))
    loops = "".join(
        f'<connect body1="{s}-plantar-rod" body2="{s}-foot" anchor="0 0 -0.15"/>'
        f'<connect body1="{s}-achilles-rod" body2="{s}-heel-spring" anchor="0 0 -0.5"/>'
        for s in ("left", "right")
    )
    return f"""<mujoco model="rods"><default><joint axis="0 1 0"/></default><worldbody>
<body name="pelvis" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/><site name="imu"/>{legs}</body>
</worldbody><equality>{loops}</equality></mujoco>"""


INCLUDED = '<mujocoinclude><geom type="sphere" pos="0 0 -0.02" size="0.03"/></mujocoinclude>'
LIMB = """<mujoco model="limb"><compiler angle="radian"/><worldbody><body name="femur">
<joint name="hip" axis="0 0 1" range="-1 1"/><joint name="lift" axis="0 1 0" range="-1 1"/>
<geom type="capsule" fromto="0 0 0 0.15 0 0" size="0.02"/>
<body name="tibia" pos="0.15 0 0"><joint name="knee" axis="0 1 0" range="-2 2"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.2" size="0.015"/>
<body name="tip" pos="0 0 -0.22"><include file="ball.xml"/></body></body></body></worldbody></mujoco>"""
ATTACHED = """<mujoco model="six"><compiler angle="radian"/>
<asset><model name="limb" file="parts/limb.xml"/></asset>
<worldbody><body name="hull" pos="0 0 0.3"><freejoint/><geom type="box" size="0.15 0.1 0.04"/><site name="imu"/>
<frame pos="0.1 0.1 0" euler="0 0 0.8"><attach model="limb" body="femur" prefix="front/"/></frame>
<frame pos="-0.1 0.1 0" euler="0 0 2.3"><attach model="limb" body="femur" prefix="rear/"/></frame>
<frame pos="0 -0.1 0"><replicate count="2" offset="0.1 0 0" euler="0 0 -0.4" sep="-">
<body name="side" euler="0 0 -1.6"><joint name="side_hip" axis="0 0 1" range="-1 1"/>
<joint name="side_knee" axis="0 1 0" range="-1 1"/>
<geom type="capsule" fromto="0 0 0 0.15 0 -0.26" size="0.01"/></body></replicate></frame>
</body></worldbody></mujoco>"""
"""Legs attached from another file, which includes a third one, and legs replicated with a suffix."""
