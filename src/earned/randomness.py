"""Randomness as a function: every random number is addressed by (seed, step, purpose, index).

Nothing draws from a global generator, so there is no generator state to save: a run resumed at step 40 asks for the
numbers of step 41 by name and gets those an uninterrupted run would have got.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np


def generator(seed: int, step: int, purpose: str, index: int | str = 0) -> np.random.Generator:
    """Return the generator addressed by the four names (Philox 4x64, keyed by a 128-bit hash of the address).

    >>> generator(0, 3, "order").random() == generator(0, 3, "order").random()
    True
    >>> generator(0, 3, "order").random() == generator(0, 4, "order").random()
    False
    """
    digest = blake2b(repr((seed, step, purpose, index)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def uniforms(seed: int, step: int, purpose: str, indices: Sequence[int | str], count: int) -> np.ndarray:
    """Return float64 [len(indices), count] in [0, 1): one row a sample, one number for each token it may draw.

    A row depends on its own index alone, never on which other samples are drawn beside it.
    """
    rows = [generator(seed, step, purpose, index).random(count) for index in indices]
    return np.stack(rows) if rows else np.empty((0, count))
