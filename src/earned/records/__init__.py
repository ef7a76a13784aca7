"""The record of a run: one SQLite file, written while it trains and read by everything that looks at it."""
