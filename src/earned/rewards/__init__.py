"""Rewards: reading an answer, checking it, and adding the parts into one score."""
