"""The optimiser, its schedule, the precision of the arithmetic, and the allocator."""
