"""Which arithmetic the forward and backward pass use. Weights and optimiser states are always float32."""

import time

import torch

SMALL_MODEL = 20_000_000
"""Below so many parameters the casts of bfloat16 cost more than its products save."""
WORTH_IT = 1.5
"""bfloat16 is chosen on a CPU only where its matrix product is measured to be this much faster."""


def resolve_precision(wanted: str, device: torch.device, parameters: int) -> str:
    """Return `float32` or `bfloat16`; `auto` asks the machine, because some CPUs only emulate bfloat16."""
    if wanted != "auto":
        return wanted
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    if parameters < SMALL_MODEL:
        return "float32"
    return "bfloat16" if _product_seconds(torch.float32) > WORTH_IT * _product_seconds(torch.bfloat16) else "float32"


def dtype_of(precision: str) -> torch.dtype:
    """Return the torch type of a resolved precision."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]


def _product_seconds(dtype: torch.dtype, size: int = 384) -> float:
    """Return the best of three timed products, after one that warms up; emulated bfloat16 takes about a second."""
    matrix = torch.ones((size, size), dtype=dtype)
    best = float("inf")
    for attempt in range(4):
        start = time.perf_counter()
        torch.mm(matrix, matrix)
        seconds = time.perf_counter() - start
        best = min(best, seconds) if attempt else best
    return best
