"""What the numbers of a step say: pure functions on rollouts, without tensors and without state."""
