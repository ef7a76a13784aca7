"""The mathematics of reinforcement learning: pure functions of tensors that import torch and no other room."""
