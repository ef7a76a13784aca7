"""Sampling attempts, and laying them out as batches to train on."""
