import pytest
import torch

from earned.optimization import precision
from earned.optimization.precision import SMALL_MODEL, dtype_of, resolve_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
@pytest.mark.parametrize("parameters", [1, 10 * SMALL_MODEL])
def test_what_is_asked_for_is_taken(wanted, parameters):
    assert resolve_precision(wanted, CPU, parameters) == wanted


def test_a_small_model_stays_float32_without_a_measurement(monkeypatch):
    monkeypatch.setattr(precision, "_product_seconds", None)
    assert resolve_precision("auto", CPU, SMALL_MODEL - 1) == "float32"
    with pytest.raises(TypeError):
        resolve_precision("auto", CPU, SMALL_MODEL)


@pytest.mark.parametrize(
    ("float32_seconds", "bfloat16_seconds", "expected"),
    [(1.0, 0.5, "bfloat16"), (1.0, 0.9, "float32"), (1.5, 1.0, "float32"), (1.0, 900.0, "float32")],
)
def test_a_large_model_takes_what_is_faster_here(monkeypatch, float32_seconds, bfloat16_seconds, expected):
    seconds = {torch.float32: float32_seconds, torch.bfloat16: bfloat16_seconds}
    monkeypatch.setattr(precision, "_product_seconds", seconds.__getitem__)
    assert resolve_precision("auto", CPU, SMALL_MODEL) == expected


def test_a_measurement_is_a_time():
    assert 0 < precision._product_seconds(torch.float32, size=16) < 1


def test_types_by_name():
    assert dtype_of("float32") is torch.float32 and dtype_of("bfloat16") is torch.bfloat16
    with pytest.raises(KeyError):
        dtype_of("auto")
