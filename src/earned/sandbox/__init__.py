"""Processes that can be killed, for code that may hang, crash or eat the memory."""
