"""Where the network looks while the robot walks: `python examples/attention_plot.py OUT.png [LOG]`.

Attention on each leg, summed over the history, with true contacts shaded. Needs `pip install 'gait-estimator[viz]'`.
"""

import sys
from pathlib import Path

import gait

SAMPLE = Path(gait.__file__).parent / "samples/go1_trot.mcap"
START, SECONDS = 4.0, 1.0
FIRST_LEG = 2
"""Tokens of a step are gyro, accelerometer, then one a leg."""


def main(out: str | Path, path: str | Path = SAMPLE) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    log = gait.open_log(path).reorder("go1")
    estimator = gait.Estimator.load("go1", "gait", attention=True)
    _, details = estimator.run_with_details(log, start="truth" if log.has_truth else "gravity")
    legs = details.attention.sum(axis=1)[:, FIRST_LEG:]  # (N, history, tokens) -> (N, legs)

    time = log.t - log.t[0]
    shown = (time >= START) & (time <= START + SECONDS)
    time, legs = time[shown], legs[shown]
    figure, axes = plt.subplots(len(log.leg_names), sharex=True, sharey=True, figsize=(7, 5), layout="constrained")
    for i, (axis, leg) in enumerate(zip(axes, log.leg_names, strict=True)):
        if log.contact is not None:
            whole_height = axis.get_xaxis_transform()
            axis.fill_between(time, 0, 1, log.contact[shown, i], step="post", color="0.88", transform=whole_height)
        axis.plot(time, legs[:, i], color="#0072B2")
        axis.set(ylabel=leg, ylim=(0, 1.1 * legs.max()), xlim=(time[0], time[-1]))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_title("attention on each leg; shaded: its foot is on the ground", fontsize=11)
    axes[-1].set_xlabel("time (s)")
    figure.savefig(out, dpi=130)
    plt.close(figure)
    print(f"wrote {out}: of all attention, legs get {legs.sum(1).mean():.0%}, the IMU the rest")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {__doc__.splitlines()[0].split('`')[1]}")
    try:
        main(*sys.argv[1:3])
    except gait.GaitError as error:
        sys.exit(str(error))
