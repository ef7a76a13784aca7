"""The real data sets and labelled cases that are not part of the project; a test that needs one is skipped without."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("EARNED_SHARED", Path(__file__).parents[1] / "../shared"))


def shared(name):
    """Return the path of a file, such as `data/gsm8k_test.jsonl`."""
    if not (SHARED / name).is_file():
        pytest.skip(f"{SHARED / name} is not there; set EARNED_SHARED to the folder that holds data/ and cases/")
    return SHARED / name
