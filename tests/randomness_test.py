from itertools import combinations

import numpy as np
import pytest

from earned.randomness import generator, uniforms

ADDRESSES = [
    (0, 1, "train", "a/0"),
    (1, 1, "train", "a/0"),
    (0, 2, "train", "a/0"),
    (0, 1, "validation", "a/0"),
    (0, 1, "train", "a/1"),
    (0, 1, "train", 0),
    (0, 1, "train", "0"),
    (1, 0, "train", 0),
    (0, 1, "train', 'a/0", 0),
    (0, 11, "train", 0),
    (0, 1, "1train", 0),
]


def test_every_address_has_numbers_of_its_own():
    drawn = {address: generator(*address).random(4) for address in ADDRESSES}
    for one, two in combinations(ADDRESSES, 2):
        assert not np.intersect1d(drawn[one], drawn[two]).size, (one, two)


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_always_gives_the_same_numbers(address):
    expected = generator(*address).random(8)
    np.random.default_rng(1).random(100)
    generator(9, 9, "other").random(100)
    assert (generator(*address).random(8) == expected).all()


def test_the_index_is_0_unless_told():
    assert generator(3, 4, "order").random() == generator(3, 4, "order", 0).random()


def test_numbers_are_the_same_on_every_machine_and_in_every_version():
    expected = [0.21642910402284532, 0.28942081414374465, 0.6156075441499492]
    assert uniforms(0, 1, "train", ["sums-1/0"], 3)[0].tolist() == expected
    assert generator(0, 1, "train", "sums-1/0").integers(2**32, size=3).tolist() == [2923595981, 929555923, 2272372519]


def test_a_row_does_not_depend_on_its_neighbours():
    together = uniforms(0, 1, "train", ["a/0", "b/0", "c/0"], 5)
    assert together.shape == (3, 5) and together.dtype == np.float64
    assert (uniforms(0, 1, "train", ["b/0"], 5)[0] == together[1]).all()
    assert (uniforms(0, 1, "train", ["c/0", "x", "b/0"], 5)[[2, 0]] == together[1:]).all()


def test_a_longer_row_begins_with_the_shorter_one():
    assert (uniforms(0, 1, "train", ["a"], 9)[:, :5] == uniforms(0, 1, "train", ["a"], 5)).all()


def test_nobody_draws_nothing():
    assert uniforms(0, 1, "train", [], 5).shape == (0, 5)
    assert uniforms(0, 1, "train", ["a"], 0).shape == (1, 0)


def test_numbers_are_uniform_and_rows_unrelated():
    rows = uniforms(0, 1, "train", range(200), 500)
    assert rows.min() >= 0 and rows.max() < 1
    counts, _ = np.histogram(rows, bins=10, range=(0, 1))
    # The 99.9 % point of chi-square with 9 degrees of freedom.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 27.9
    correlation = np.corrcoef(rows)[np.triu_indices(200, 1)]
    assert np.abs(correlation).max() < 0.25


def test_the_global_generator_is_left_alone():
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    uniforms(0, 1, "train", ["a"], 5)
    assert np.random.random() == expected
