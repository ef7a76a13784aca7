"""One line of JSON on standard output."""

import json
import math
import sys
from collections.abc import Mapping, Sequence


def write_json(row: Mapping[str, object] | Sequence[Mapping[str, object]]) -> None:
    """Write a row, or rows as a list, as one line; null for a number that is not finite, which JSON does not know."""
    sys.stdout.write(json.dumps(_finite(row), allow_nan=False) + "\n")


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
