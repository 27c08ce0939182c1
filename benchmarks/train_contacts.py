"""Trains the contact network of `gait bench rivals` (src/gait/reference/contact_network.py) on simulated walks.

    python benchmarks/train_contacts.py              # train, and print its F1
    python benchmarks/train_contacts.py --write      # and write the weights that the package reads

Walks are drawn as those of tune_baselines.py, from another seed and three times as many, with the same faults; every
eighth one validates. Labels are the true contacts. Weights are those of the epoch with the lowest validation error.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
import tune_baselines as tuning
from torch import nn

from gait.arrays import BoolArray
from gait.bench.rival_runs import CONTACT_WEIGHTS
from gait.errors import GaitError
from gait.io import open_log
from gait.nets.model import write_arrays
from gait.reference.contact_network import KIND, RATE, WINDOW, ContactNetwork, Float32, class_of, contact_features
from gait.train.faults import MILD, FaultRanges, with_faults

RUNS = Path(__file__).parents[1] / "runs/train-contacts"
SEED, TIMES, VALIDATION = 33001, 3, 8
EPOCHS, STEPS, BATCH, RATE_OF_LEARNING = 6, 250, 128, 2e-3
CHANNELS, HIDDEN, DROPOUT = (32, 32, 64, 64), 128, 0.3

Walk = tuple[Float32, BoolArray]
"""Features (N, F) and contacts (N, L) at 500 Hz."""


def load_walks(folder: Path = RUNS) -> tuple[list[Walk], list[Walk]]:
    """For training and for validation; recorded first where the folder lacks them."""
    from gait.sim.collect import collect
    from gait.sim.plan import CollectConfig
    from gait.sim.store import read_index, robot_of_episode

    halves: tuple[list[Walk], list[Walk]] = ([], [])
    for number, (kind, (gait, terrain, count)) in enumerate(tuning.WALKS.items()):
        config = CollectConfig(
            gait, terrain, episodes=TIMES * count, seconds=tuning.SECONDS, seed=SEED, sensors="exact", varied=True,
            random_robots=terrain != "slippery",
        )  # fmt: skip
        collect(config, folder / kind)
        for i, row in enumerate(read_index(folder / kind)[: TIMES * count]):
            path, rng = folder / kind / row["file"], np.random.default_rng([SEED, number, i])
            log = open_log(path)
            found = with_faults(log, robot_of_episode(path, log), rng, MILD if i % 2 == 0 else FaultRanges())
            faulty = found.log if abs(found.log.rate - RATE) < 1.0 else found.log.resample(RATE)
            if faulty.contact is None:
                raise GaitError(f"{path} has no true contacts: simulate it again")
            features = contact_features(faulty, found.robot)
            halves[i % VALIDATION == 0].append((features, np.asarray(faulty.contact, dtype=bool)))
    return halves


class Convolutions(nn.Module):
    """The network in torch, with the names of the numpy one."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        sizes = (features, *CHANNELS)
        for i in range(4):
            setattr(self, f"conv{i}", nn.Conv1d(sizes[i], sizes[i + 1], 3, padding=1))
        self.dense0 = nn.Linear(CHANNELS[-1] * (WINDOW // 2 // 2), HIDDEN)
        self.dense1 = nn.Linear(HIDDEN, classes)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores (B, classes) of windows (B, F, WINDOW)."""
        for i in range(4):
            x = torch.relu(getattr(self, f"conv{i}")(x))
            if i % 2:
                x = torch.max_pool1d(x, 2)
        scores: torch.Tensor = self.dense1(self.drop(torch.relu(self.dense0(self.drop(x.flatten(1))))))
        return scores


def batch_of(walks: list[Walk], rng: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Windows (B, F, WINDOW) that end at random samples, and their classes."""
    windows, classes = [], []
    for i in rng.integers(len(walks), size=count):
        features, contact = walks[i]
        end = int(rng.integers(WINDOW, len(features)))
        windows.append(features[end - WINDOW + 1 : end + 1])
        classes.append(class_of(contact[end : end + 1])[0])
    return torch.from_numpy(np.stack(windows)).transpose(1, 2), torch.tensor(classes)


def train(walks: list[Walk], held: list[Walk]) -> dict[str, Float32]:
    """The weights of the epoch with the lowest validation error, by name."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    together = np.concatenate([features for features, _ in walks])
    mean, std = torch.from_numpy(together.mean(0)), torch.from_numpy(together.std(0) + 1e-6)
    legs = walks[0][1].shape[1]
    network = Convolutions(together.shape[1], 1 << legs)
    optimiser = torch.optim.AdamW(network.parameters(), RATE_OF_LEARNING, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE_OF_LEARNING, total_steps=EPOCHS * STEPS)
    judged = [batch_of(held, np.random.default_rng(SEED + 1), 512) for _ in range(8)]
    best, least = dict[str, torch.Tensor](), np.inf
    for epoch in range(EPOCHS):
        network.train()
        total, began = 0.0, time.perf_counter()
        for _ in range(STEPS):
            x, y = batch_of(walks, rng, BATCH)
            loss = nn.functional.cross_entropy(network((x - mean[:, None]) / std[:, None]), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        network.eval()
        with torch.no_grad():
            losses = [nn.functional.cross_entropy(network((x - mean[:, None]) / std[:, None]), y) for x, y in judged]
        error = float(torch.stack(losses).mean())
        spent = time.perf_counter() - began
        print(f"epoch {epoch}: training {total / STEPS:.3f}, validation {error:.3f}, {spent:.0f} s", flush=True)
        if error < least:
            least, best = error, {name: value.clone() for name, value in network.state_dict().items()}
    return {name: value.numpy() for name, value in {**best, "mean": mean, "std": std}.items()}


def f1(weights: dict[str, Float32], walks: list[Walk]) -> float:
    """Of single feet, over all windows of these walks, by the numpy network."""
    network, hits, called, true = ContactNetwork(weights), 0, 0, 0
    for features, contact in walks:
        windows = np.lib.stride_tricks.sliding_window_view(features, WINDOW, axis=0).transpose(0, 2, 1)[::5]
        found = (network.classes(windows).argmax(1)[:, None] >> np.arange(contact.shape[1])) & 1 > 0
        truth = contact[WINDOW - 1 :][::5]
        hits, called, true = hits + int((found & truth).sum()), called + int(found.sum()), true + int(truth.sum())
    return 2.0 * hits / (called + true)


def main() -> None:
    """Train, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights that the package reads")
    args = parser.parse_args()
    walks, held = load_walks()
    print(f"{len(walks)} walks for training, {len(held)} for validation", flush=True)
    # As the file holds them.
    weights = {name: value.astype(np.float16).astype(np.float32) for name, value in train(walks, held).items()}
    score = f1(weights, held)
    print(f"F1 on validation walks {score:.4f}")
    if args.write:
        about = {"f1": score, "walks": len(walks), "seed": SEED, "rate": RATE, "window": WINDOW}
        write_arrays(CONTACT_WEIGHTS, KIND, {name: value.astype(np.float16) for name, value in weights.items()}, about)


if __name__ == "__main__":
    main()
