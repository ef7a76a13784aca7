"""earned: reinforcement learning for reasoning, honest about whether the reward was earned."""

__version__ = "0.1.0"
