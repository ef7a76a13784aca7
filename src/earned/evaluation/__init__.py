"""Measuring a policy: accuracy with an interval in which the problem is the unit."""
