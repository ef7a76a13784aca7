import pytest

from earned.errors import RecordError
from earned.records.metrics import METRICS, require_declared


def test_every_metric_is_declared_once_with_a_unit_and_one_sentence():
    assert len({metric.key for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert metric.unit, metric.key
        assert metric.sentence.endswith(".") and ". " not in metric.sentence, metric.key


def test_a_family_covers_its_members_and_nothing_else():
    assert require_declared("reward/part/answer").key == "reward/part/*"
    for outside in ("reward/part/", "reward/part", "rewards/part/answer"):
        with pytest.raises(RecordError):
            require_declared(outside)


def test_an_undeclared_key_is_refused_with_the_nearest():
    with pytest.raises(RecordError, match=r"'reward/men' is not declared.*Did you mean 'reward/mean'\?"):
        require_declared("reward/men")
