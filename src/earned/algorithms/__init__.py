"""The mathematics of reinforcement learning: pure functions of tensors that import torch and no other room."""

from earned.algorithms import advantages as advantages
from earned.algorithms import aggregation as aggregation
from earned.algorithms import corrections as corrections
from earned.algorithms import divergences as divergences
from earned.algorithms import named as named
from earned.algorithms import surrogates as surrogates
