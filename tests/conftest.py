import pytest

from earned.policy.load import save_policy
from earned.policy.tiny import untrained_policy
from earned.pretrain_recipe import PretrainModel


@pytest.fixture(scope="session")
def small_model(tmp_path_factory):
    """The folder of a model that was never trained."""
    folder = tmp_path_factory.mktemp("model")
    shape = PretrainModel(hidden_size=32, layers=2, heads=2, intermediate_size=64)
    save_policy(untrained_policy(shape, seed=0), folder)
    return str(folder)
