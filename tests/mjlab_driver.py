"""Runs in an environment of its own, with mjlab: steps the example's robots and prints how far the estimate is off."""

import json
import runpy
import sys

import torch

env = runpy.run_path(sys.argv[1])["env"]
torch.manual_seed(0)
observation, _ = env.reset(seed=0)
errors, same = [], True
for _ in range(int(sys.argv[2])):
    observation, *_ = env.step(0.2 * torch.randn(env.num_envs, 12, device=env.device))
    same = same and torch.equal(observation["actor"][:, :3], env.estimate.vel_b)
    walked = env.episode_length_buf > 5
    errors += (env.estimate.vel_b - env.scene["robot"].data.root_link_lin_vel_b).norm(dim=1)[walked].tolist()
print(json.dumps({"median": float(torch.tensor(errors).median()), "same": same, "envs": env.num_envs}))
