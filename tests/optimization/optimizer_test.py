import math

import pytest
import torch
from torch import Tensor, nn

from earned.errors import EngineError
from earned.optimization.optimizer import FAILED_STEPS_ALLOWED, Optimizer
from earned.recipe import Optim

RATE = 0.1


def parameters() -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return {name: nn.Parameter(torch.randn(3, 2, generator=generator)) for name in ("layer.a", "layer.b", "layer.c")}


def optimizer(own: dict[str, nn.Parameter], **settings: float) -> Optimizer:
    return Optimizer(own, Optim.model_validate({"learning_rate": RATE, **settings}))


def put_gradients(own: dict[str, nn.Parameter], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in own.values():
        parameter.grad = torch.randn(3, 2, generator=generator)


def copies(own: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in own.items()}


def unchanged(own: dict[str, nn.Parameter], before: dict[str, Tensor]) -> bool:
    return all(torch.equal(own[name], before[name]) for name in own)


def test_the_first_step_by_hand():
    # Adam's first step is the rate times the sign of the gradient; decay takes rate * decay of the weight first.
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    adam = optimizer({"w": weight}, weight_decay=0.5, max_grad_norm=100.0)
    weight.grad = torch.tensor([3.0, -4.0])
    assert adam.step(RATE) == pytest.approx(5.0)
    expected = torch.tensor([1.0 * 0.95 - 0.1, -2.0 * 0.95 + 0.1])
    torch.testing.assert_close(weight.detach(), expected)
    assert weight.grad is None


def test_the_rate_of_the_step_wins_over_that_of_the_recipe():
    weight = nn.Parameter(torch.tensor([1.0]))
    adam = optimizer({"w": weight})
    for rate, expected in ((0.25, 0.75), (0.0, 0.75), (0.5, 0.25)):
        weight.grad = torch.tensor([1.0])
        adam.step(rate)
        assert weight.item() == pytest.approx(expected, abs=1e-6)


def test_the_norm_is_over_all_tensors_and_clipped():
    # A norm of 5 clipped to 1 acts as the gradient (0.6, 0.8); its square shows in Adam's second moment.
    left, right = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    adam = optimizer({"left": left, "right": right}, max_grad_norm=1.0)
    left.grad, right.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert adam.step(RATE) == pytest.approx(5.0)
    state = adam.state()
    assert state["left/exp_avg_sq"].item() == pytest.approx(0.05 * 0.36, rel=1e-5)
    assert state["right/exp_avg_sq"].item() == pytest.approx(0.05 * 0.64, rel=1e-5)


def test_a_small_gradient_is_not_clipped():
    weight = nn.Parameter(torch.zeros(1))
    adam = optimizer({"w": weight}, max_grad_norm=1.0)
    weight.grad = torch.tensor([0.5])
    assert adam.step(RATE) == pytest.approx(0.5)
    assert adam.state()["w/exp_avg_sq"].item() == pytest.approx(0.05 * 0.25)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_not_finite_is_skipped(bad):
    own = parameters()
    adam = optimizer(own)
    put_gradients(own, seed=1)
    adam.step(RATE)
    weights, states = copies(own), {key: value.clone() for key, value in adam.state().items()}
    put_gradients(own, seed=2)
    own["layer.b"].grad[0, 0] = bad
    assert not math.isfinite(adam.step(RATE))
    assert unchanged(own, weights)
    assert all(torch.equal(value, states[key]) for key, value in adam.state().items())
    assert all(parameter.grad is None for parameter in own.values())
    put_gradients(own, seed=3)
    adam.step(RATE)
    assert not unchanged(own, weights)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_three_in_a_row_stop_the_run_naming_the_tensor(bad):
    own = parameters()
    adam = optimizer(own)
    before = copies(own)
    for attempt in range(FAILED_STEPS_ALLOWED):
        put_gradients(own, seed=attempt)
        own["layer.b"].grad[0, 0] = bad
        own["layer.c"].grad[0, 0] = bad
        if attempt < FAILED_STEPS_ALLOWED - 1:
            adam.step(RATE)
    with pytest.raises(EngineError, match=r"3 updates in a row .*first in layer\.b\).*optim\.learning_rate"):
        adam.step(RATE)
    assert unchanged(own, before)


def test_a_good_update_in_between_starts_the_count_again():
    own = parameters()
    adam = optimizer(own)
    for attempt in range(3 * FAILED_STEPS_ALLOWED):
        put_gradients(own, seed=attempt)
        if attempt % FAILED_STEPS_ALLOWED:
            own["layer.a"].grad[0, 0] = math.nan
        adam.step(RATE)


def test_finite_gradients_with_an_infinite_norm_are_skipped_too():
    own = parameters()
    adam = optimizer(own)
    for attempt in range(FAILED_STEPS_ALLOWED):
        put_gradients(own, seed=attempt)
        own["layer.a"].grad.fill_(3e38)
        if attempt < FAILED_STEPS_ALLOWED - 1:
            assert adam.step(RATE) == math.inf
    with pytest.raises(EngineError, match="first in the norm only"):
        adam.step(RATE)


def test_a_restored_optimiser_takes_bit_equal_steps():
    own = parameters()
    adam = optimizer(own, weight_decay=0.01)
    for seed in (1, 2, 3):
        put_gradients(own, seed)
        adam.step(RATE)
    saved_weights, saved_state = copies(own), {key: value.clone() for key, value in adam.state().items()}

    def go_on(adam: Optimizer, own: dict[str, nn.Parameter]) -> dict[str, Tensor]:
        for seed in (4, 5):
            put_gradients(own, seed)
            adam.step(RATE)
        return copies(own)

    expected = go_on(adam, own)
    restored = {name: nn.Parameter(value.clone()) for name, value in saved_weights.items()}
    other = optimizer(restored, weight_decay=0.01)
    other.load_state(saved_state)
    assert unchanged(own, go_on(other, restored))
    forgetful = {name: nn.Parameter(value.clone()) for name, value in saved_weights.items()}
    go_on(optimizer(forgetful, weight_decay=0.01), forgetful)
    assert not unchanged(forgetful, expected)


def test_the_state_is_named_after_the_parameters():
    own = {"layer": nn.Parameter(torch.ones(2)), "layer/inner": nn.Parameter(torch.ones(3))}
    adam = optimizer(own)
    assert adam.state() == {}
    for parameter in own.values():
        parameter.grad = torch.ones_like(parameter)
    adam.step(RATE)
    shapes = {key: tuple(value.shape) for key, value in adam.state().items()}
    assert shapes == {
        f"{name}/{key}": shape
        for name, size in (("layer", (2,)), ("layer/inner", (3,)))
        for key, shape in (("step", ()), ("exp_avg", size), ("exp_avg_sq", size))
    }
    other = optimizer({name: nn.Parameter(value.detach().clone()) for name, value in own.items()})
    other.load_state(adam.state())
    assert {key: tuple(value.shape) for key, value in other.state().items()} == shapes


def test_nothing_to_train_is_refused():
    with pytest.raises(EngineError, match="no trainable parameter"):
        optimizer({})
