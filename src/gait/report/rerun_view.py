"""The robot in Rerun: its estimated pose, velocity with its uncertainty, attention, and ground truth."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError, need_extra
from gait.log import Log, Trajectory
from gait.report.chart import AXES
from gait.report.walk_charts import vel_b_std
from gait.robot import Robot

if TYPE_CHECKING:
    from gait.estimator import State, StateArrays

SUFFIX = ".rrd"
RATE = 50.0
"""Frames a second: a tenth of the data."""
SHOWN_WAY = 1200
"""Points of the path behind a live robot: all of them are sent again with each update."""
ESTIMATE, TRUTH, GROUND = (0, 114, 178), (120, 120, 120), (0, 0, 0)
"""Colours of Okabe and Ito, as in all figures."""
_TIMELINE = "time"
_XYZW = [1, 2, 3, 0]


class View:
    """A window of Rerun, or a file for it. Frames come one by one, or a whole run at once."""

    def __init__(self, robot: Robot, path: Path | None = None) -> None:
        """Open it.

        Args:
            robot: what to draw.
            path: file to write, ending in .rrd; without one, a window opens.
        """
        if path is not None and path.suffix != SUFFIX:
            raise GaitError(f"{path} does not end in {SUFFIX}: name it so, or give --view alone for a window")
        if path is not None and path.exists():
            raise GaitError(f"{path} exists: name a file that does not, or move it away")
        try:
            import rerun
        except ImportError:
            raise need_extra("rerun-sdk", "view") from None
        self._rr: Any = rerun
        self._robot = robot
        self._way: deque[Array] = deque(maxlen=SHOWN_WAY)
        self._start: float | None = None
        self._frames = 0
        self._rec: Any = rerun.RecordingStream(f"gait {robot.name}")
        try:
            if path is not None:
                self._rec.save(path, default_blueprint=_blueprint())
            else:
                self._rec.spawn(default_blueprint=_blueprint())
        except Exception as error:
            # Rerun has errors of many kinds here, from a missing folder to a missing display.
            hint = "" if path is not None else "; without a display, write a file: --view run.rrd"
            raise GaitError(f"cannot open Rerun: {' '.join(str(error).split())}{hint}") from None
        self._constants()

    def show(self, t: float, state: State, q: Array) -> None:
        """One sample of a live robot."""
        if self._start is None:
            self._start = t
        self._rec.set_time(_TIMELINE, duration=t - self._start)
        self._pose(state.pos_w, state.quat_wb_wxyz, q, state.vel_b)
        self._way.append(np.array(state.pos_w))
        self._frames += 1
        if self._frames % int(RATE) == 0:
            self._line("world/way/estimate", np.array(self._way), ESTIMATE)
        for entity, value in self._scalars(state.vel_b, state.vel_b_std, state.attention).items():
            self._rec.log(entity, self._rr.Scalars(value))

    def show_run(
        self,
        log: Log,
        trajectory: Trajectory,
        details: StateArrays | None = None,
        progress: Callable[[float], None] = lambda share: None,
    ) -> None:
        """A whole run, with ground truth where the log has it.

        Args:
            log: the input.
            trajectory: the estimate, on the log's clock.
            details: for the attention.
            progress: called with the share that is done.
        """
        step = max(round(trajectory.rate / RATE), 1)
        rows = np.arange(0, len(trajectory), step)
        t = trajectory.t - trajectory.t[0]
        q = log.reorder(self._robot).q
        std = None if trajectory.vel_cov is None else vel_b_std(trajectory)
        attention = None if details is None else details.attention
        when = self._rr.TimeColumn(_TIMELINE, duration=t[rows])
        scalars = self._scalars(trajectory.vel_b, std, attention, log.vel_b if log.has_truth else None)
        for entity, values in scalars.items():
            self._rec.send_columns(entity, [when], self._rr.Scalars.columns(scalars=values[rows]))
        self._line("world/way/estimate", trajectory.pos_w[rows], ESTIMATE, static=True)
        if log.has_truth:
            self._line("world/way/truth", log.need("pos_w")[rows], TRUTH, static=True)
            self._body("world/truth/body", TRUTH)
        for k, i in enumerate(rows.tolist()):
            self._rec.set_time(_TIMELINE, duration=float(t[i]))
            self._pose(trajectory.pos_w[i], trajectory.quat_wb_wxyz[i], q[i], trajectory.vel_b[i])
            if log.has_truth:
                pose = self._transform(log.need("pos_w")[i], log.need("quat_wb_wxyz")[i])
                self._rec.log("world/truth", pose)
            if k % 100 == 0:
                progress(k / len(rows))

    def close(self) -> None:
        """Write what is buffered."""
        self._rec.flush()
        self._rec.disconnect()

    def _constants(self) -> None:
        rr = self._rr
        self._rec.log("world", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
        self._body("world/robot/body", ESTIMATE)
        for axis in AXES:
            for name, colour in (("estimate", ESTIMATE), ("truth", GROUND)):
                self._rec.log(f"velocity/{axis}/{name}", rr.SeriesLines(colors=[colour], names=[name]), static=True)
            for name in ("upper", "lower"):
                style = rr.SeriesLines(colors=[(86, 180, 233)], names=[f"{name} 2 std"], widths=[0.7])
                self._rec.log(f"velocity/{axis}/{name}", style, static=True)

    def _body(self, entity: str, colour: tuple[int, int, int]) -> None:
        box = self._rr.Boxes3D(half_sizes=[self._robot.shapes.base / 2.0], colors=[colour], fill_mode="majorwireframe")
        self._rec.log(entity, box, static=True)

    def _pose(self, pos_w: Array, quat_wb_wxyz: Array, q: Array, vel_b: Array) -> None:
        rr = self._rr
        self._rec.log("world/robot", self._transform(pos_w, quat_wb_wxyz))
        if np.isfinite(q).all():
            legs = self._robot.skeleton(q)
            self._rec.log("world/robot/legs", rr.LineStrips3D(legs, colors=[ESTIMATE], radii=[0.012]))
            self._rec.log(
                "world/robot/feet",
                rr.Points3D([leg[-1] for leg in legs], colors=[GROUND], radii=[self._robot.foot_radius]),
            )
        self._rec.log("world/robot/velocity", rr.Arrows3D(vectors=[vel_b], colors=[(213, 94, 0)]))

    def _transform(self, pos_w: Array, quat_wb_wxyz: Array) -> Any:
        rr = self._rr
        return rr.Transform3D(translation=pos_w, quaternion=rr.Quaternion(xyzw=quat_wb_wxyz[_XYZW]))

    def _line(self, entity: str, points: Array, colour: tuple[int, int, int], static: bool = False) -> None:
        self._rec.log(entity, self._rr.LineStrips3D([points], colors=[colour], radii=[0.004]), static=static)

    def _scalars(
        self, vel_b: Array, std: Array | None, attention: Array | None, truth: Array | None = None
    ) -> dict[str, Array]:
        """Plotted values by entity, of one moment (3,) or of many (N, 3)."""
        vectors = {"velocity/{}/estimate": vel_b}
        if std is not None:
            vectors |= {"velocity/{}/upper": vel_b + 2.0 * std, "velocity/{}/lower": vel_b - 2.0 * std, "std/{}": std}
        if truth is not None:
            vectors["velocity/{}/truth"] = truth
        found = {name.format(axis): one[..., i] for i, axis in enumerate(AXES) for name, one in vectors.items()}
        if attention is not None:
            shares = attention.sum(-2)  # (N, tokens)
            for k, name in enumerate(tokens(self._robot, shares.shape[-1])):
                found[f"attention/{name}"] = shares[..., k]
        return found


def tokens(robot: Robot, count: int) -> Sequence[str]:
    """Names of the tokens of a network: legs alone; the IMU, then legs, or kinds of joint data."""
    if count == robot.num_legs:
        return robot.leg_names
    legs = ("gyro", "accel", *robot.leg_names)
    return legs if count == len(legs) else ("gyro", "accel", "q", "dq", "q_des", *map(str, range(count)))[:count]


def _blueprint() -> Any:
    import rerun.blueprint as rrb

    plots = [rrb.TimeSeriesView(origin=f"velocity/{axis}", name=f"{axis} (m/s)") for axis in AXES]
    rest = [rrb.TimeSeriesView(origin="std", name="std (m/s)"), rrb.TimeSeriesView(origin="attention")]
    space = rrb.Spatial3DView(origin="world", name="robot")
    return rrb.Blueprint(rrb.Horizontal(space, rrb.Vertical(*plots, *rest), column_shares=[3, 2]), collapse_panels=True)
