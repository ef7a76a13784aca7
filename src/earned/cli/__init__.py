"""The command line: one file a verb, thin. Rooms that need torch are imported late, so that `--help` is fast."""
