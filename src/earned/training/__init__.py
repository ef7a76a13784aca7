"""The loop, the update and the checkpoints."""
