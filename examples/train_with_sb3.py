"""Train Stable-Baselines3's SAC on the reward of a run, and compare it with the run's own policy.

firl train pointmass-gaussian --out runs/first && pip install stable-baselines3
python examples/train_with_sb3.py runs/first firl.envs:firl/PointMass-v0 20000
"""

import sys

import gymnasium
import numpy as np
from stable_baselines3 import SAC

import firl

run, env_id, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
learned = firl.load(run)
sac = learned.config.sac
env = firl.RewardWrapper(gymnasium.make(env_id), learned)

# The reward was learned with this entropy and discount: with others it asks for something else.
entropy = "auto" if sac.learn_temperature else sac.temperature
agent = SAC("MlpPolicy", env, ent_coef=entropy, gamma=sac.discount, seed=0).learn(steps)


def show(name, act, episodes=20):
    """Print what an agent is paid per step."""
    rewards = []
    for seed in range(episodes):
        obs, ended = env.reset(seed=seed)[0], False
        while not ended:
            obs, reward, terminated, truncated, _ = env.step(act(obs, len(rewards)))
            rewards.append(reward)
            ended = terminated or truncated
    print(f"{name:<18} learned reward per step {np.mean(rewards):.3f}")


show("Stable-Baselines3", lambda obs, t: agent.predict(obs)[0])
show("firl", lambda obs, t: learned.policy(obs[None], seed=t)[0])
