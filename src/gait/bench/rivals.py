"""Other ways to run the same step, to measure ours against: torch, ONNX Runtime and gtsam's filter.

A rival takes a sample and brings its own state up to date. Those that run a network alone are followed by our
filter (`InvariantEKF.step`), so that all of them do the same work and a difference is the network's.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gait.arrays import Array
from gait.errors import GaitError
from gait.invariant_ekf import InvariantEKF
from gait.log import Sample
from gait.nets.model import Model
from gait.parameters import Options

Step = Callable[[Sample], object]
Network = Callable[[Sample], tuple[Array, Array]]
"""From a sample to velocity (3,) and log-std (3,), with a memory of its own."""


class MissingRivalError(GaitError):
    """A rival that cannot run here; the text says why."""


def with_filter(network: Network, rate: float) -> Step:
    """A network and then our filter, which takes its velocity."""
    filter_, cov = InvariantEKF(), np.zeros((3, 3))
    diagonal, factor = np.einsum("ii->i", cov), Options().inflation ** 2

    def step(sample: Sample) -> None:
        velocity, log_std = network(sample)
        diagonal[...] = factor * np.exp(2.0 * log_std)
        filter_.step(sample.gyro, sample.accel, 1.0 / rate, velocity, cov)

    return step


def torch_network(model: Model, compiled: bool) -> Network:
    """The network in torch (`torch_step.py`): eager, or traced, frozen and optimised by torch.jit; one thread."""
    module_of("torch")
    import torch

    from gait.bench.torch_step import torch_step

    torch.set_num_threads(1)
    buffer = np.zeros(model.architecture.num_features, dtype=np.float32)
    inputs, joints = torch.from_numpy(buffer), len(model.joint_names)
    gyro, accel, q, dq, e = np.split(buffer, [3, 6, 6 + joints, 6 + 2 * joints])
    call: Any = torch_step(model)
    state: Sequence[Any] = call.start
    if compiled:
        with torch.no_grad(), warnings.catch_warnings():
            # It warns of sizes that become constants, and here they are.
            warnings.simplefilter("ignore")
            trace: Any = torch.jit.trace
            traced = trace(call, (inputs, *state), check_trace=False)
            call = torch.jit.optimize_for_inference(torch.jit.freeze(traced.eval()))

    def network(sample: Sample) -> tuple[Array, Array]:
        nonlocal state
        gyro[...], accel[...], q[...], dq[...] = sample.gyro, sample.accel, sample.q, sample.dq
        if e.size:
            e[...] = sample.q_des - sample.q  # type: ignore[operator]
        with torch.inference_mode():
            velocity, log_std, *state = call(inputs, *state)
        return velocity.numpy().astype(np.float64), log_std.numpy().astype(np.float64)

    return network


def onnx_network(model: Model) -> Network:
    """The exported graph in ONNX Runtime on one thread, fed with arrays of numpy."""
    runtime = module_of("onnxruntime")
    module_of("onnx")
    from gait.export.onnx import onnx_model

    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(
        onnx_model(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    kinds = {"tensor(float)": np.float32, "tensor(bool)": np.bool_}
    feed: dict[str, Any] = {entry.name: np.zeros(entry.shape, kinds[entry.type]) for entry in session.get_inputs()}
    if "seen" in feed:
        feed["seen"][...] = True
    outputs = [entry.name for entry in session.get_outputs()]
    velocity_at, log_std_at = outputs.index("velocity"), outputs.index("log_std")
    kept = [(i, name.removeprefix("next_")) for i, name in enumerate(outputs) if name.startswith("next_")]
    names = [name for name in ("gyro", "accel", "q", "dq", "q_des") if name in feed]

    def network(sample: Sample) -> tuple[Array, Array]:
        for name in names:
            feed[name][...] = getattr(sample, name)
        answer = session.run(outputs, feed)
        for i, name in kept:
            feed[name] = answer[i]
        return answer[velocity_at].astype(np.float64), answer[log_std_at].astype(np.float64)

    return network


FEET = np.array([[0.2, -0.13, -0.3], [0.2, 0.13, -0.3]])
"""Where two feet of a trotting robot stand, in the body frame, m."""


def gtsam_filter() -> tuple[Any, list[Any]]:
    """gtsam's LeggedInvariantEKF with two feet on the ground, and measurements of them."""
    gtsam = module_of("gtsam")
    if not hasattr(gtsam, "LeggedInvariantEKF"):
        raise MissingRivalError("this gtsam has no LeggedInvariantEKF: 4.3 has")
    params = gtsam.LeggedEstimatorParams()
    imu = gtsam.PreintegrationParams.MakeSharedU(9.81)
    imu.setGyroscopeCovariance(np.eye(3) * 1e-5)
    imu.setAccelerometerCovariance(np.eye(3) * 1e-3)
    params.preintegrationParams = imu
    params.body_P_imu = gtsam.Pose3()
    # Otherwise it waits for more feet than two and does nothing, very fast.
    params.useFullContactInitialization = False
    start = gtsam.NavState(gtsam.Rot3(), np.zeros(3), np.zeros(3))
    filter_ = gtsam.LeggedInvariantEKF(start, FEET.T.copy(), np.eye(15) * 1e-2, params, ["FR", "FL"])
    measurements = []
    for i, foot in enumerate(FEET):
        measurement = gtsam.ContactMeasurement()
        measurement.foot, measurement.bodyPoint, measurement.touchdown = i, foot, False
        measurements.append(measurement)
    return filter_, measurements


def gtsam_step(rate: float) -> Step:
    """Prediction and correction by two feet that stand. Ours does more: it also finds the feet and their contacts."""
    filter_, measurements = gtsam_filter()

    def step(sample: Sample) -> None:
        filter_.predict(sample.gyro, sample.accel, 1.0 / rate)
        filter_.processContacts(measurements)

    return step


def module_of(name: str) -> Any:
    """A package that a rival needs; MissingRivalError without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingRivalError(f"{name} is not installed") from None
