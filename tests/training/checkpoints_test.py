"""A checkpoint is an ordinary model folder, is there whole or not at all, and holds everything a run needs."""

import resource
from contextlib import contextmanager

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from earned.errors import RecordError
from earned.optimization.optimizer import Optimizer
from earned.policy.load import fingerprint, load_policy
from earned.policy.tiny import untrained_policy
from earned.recipe import Optim
from earned.training.checkpoints import Learners, checkpoints, load_progress, save_checkpoint, saved_step
from earned.training.progress import Progress


@pytest.fixture
def policy(shape):
    return untrained_policy(shape, seed=1)


@pytest.fixture
def optimizer(policy):
    """One that has taken a step, so that it has states."""
    optimizer = Optimizer(policy.parameters(), Optim())
    advance(policy, optimizer)
    return optimizer


@pytest.fixture
def learners(policy, optimizer):
    return Learners(policy=policy, optimizer=optimizer, critic=None)


def advance(policy, optimizer):
    policy.model(input_ids=torch.tensor([[0, 20, 14, 21, 32]])).logits.square().mean().backward()
    optimizer.step(1e-2)


@contextmanager
def small_files_only():
    """Let no file grow beyond a kilobyte for a while: what a full disk looks like to a program."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return [path.name for path in checkpoints(folder)]


def test_weights_states_and_progress_come_back(tmp_path, policy, optimizer, learners):
    progress = Progress(step=7, policy_version=5, empty_steps=2)
    folder = save_checkpoint(tmp_path, learners, progress, keep_last=1)
    again = load_policy(str(folder))
    assert fingerprint(again) == fingerprint(policy) and again.eos_ids == policy.eos_ids
    restored = Optimizer(again.parameters(), Optim())
    assert saved_step(tmp_path) == 7 and saved_step(tmp_path / "nowhere") == 0
    assert load_progress(folder, Learners(policy=again, optimizer=restored, critic=None), {}) == progress
    advance(again, restored)
    advance(policy, optimizer)
    assert fingerprint(again) == fingerprint(policy), "the next step is the same, bit for bit"


def test_without_its_states_the_next_step_is_another(tmp_path, policy, optimizer, learners):
    folder = save_checkpoint(tmp_path, learners, Progress(step=1), keep_last=1)
    again = load_policy(str(folder))
    advance(again, Optimizer(again.parameters(), Optim()))
    advance(policy, optimizer)
    assert fingerprint(again) != fingerprint(policy)


def test_it_opens_with_the_plain_classes_and_holds_no_pickle(tmp_path, policy, optimizer, learners):
    folder = save_checkpoint(tmp_path, learners, Progress(step=1), keep_last=1)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    token_ids = torch.tensor([tokenizer("12+34=")["input_ids"]])
    assert torch.equal(model(input_ids=token_ids).logits, policy.model(input_ids=token_ids).logits)
    assert tokenizer.decode(token_ids[0], skip_special_tokens=True) == "12+34="
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".safetensors", ".json"}


def test_the_newest_are_kept_and_the_best(tmp_path, policy, optimizer, learners):
    for step in range(1, 7):
        keep_step = 2 if step >= 2 else None
        progress = Progress(step=step)
        save_checkpoint(tmp_path, learners, progress, keep_last=2, keep_step=keep_step)
    assert names(tmp_path) == ["step_000002", "step_000005", "step_000006"]
    save_checkpoint(tmp_path, learners, Progress(step=7), keep_last=1, keep_step=6)
    assert names(tmp_path) == ["step_000006", "step_000007"], "a new best lets go of the old one"


def test_step_numbers_sort_as_numbers(tmp_path, policy, optimizer, learners):
    for step in (9, 10, 100):
        save_checkpoint(tmp_path, learners, Progress(step=step), keep_last=3)
    assert names(tmp_path) == ["step_000009", "step_000010", "step_000100"]


def test_a_half_written_one_is_never_seen_and_makes_room(tmp_path, policy, optimizer, learners):
    first = save_checkpoint(tmp_path, learners, Progress(step=1), keep_last=5)
    aside = tmp_path / ".step_000002.writing"
    first.rename(aside)
    (aside / "rest of an earlier try").touch()
    assert checkpoints(tmp_path) == []
    (tmp_path / "step_000003" / "trainer_state").mkdir(parents=True)
    assert checkpoints(tmp_path) == [], "nor one without its progress"
    second = save_checkpoint(tmp_path, learners, Progress(step=2), keep_last=5)
    assert not aside.exists() and not (second / "rest of an earlier try").exists()
    assert names(tmp_path) == ["step_000002"]


def test_saving_a_step_again_replaces_it(tmp_path, policy, optimizer, learners):
    save_checkpoint(tmp_path, learners, Progress(step=1, policy_version=1), keep_last=2)
    advance(policy, optimizer)
    folder = save_checkpoint(tmp_path, learners, Progress(step=1, policy_version=2), keep_last=2)
    assert names(tmp_path) == ["step_000001"]
    assert fingerprint(load_policy(str(folder))) == fingerprint(policy)
    assert load_progress(folder, learners, {}).policy_version == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path, policy, optimizer, learners):
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match=r"step_000001: the checkpoint could not be written: "):
        save_checkpoint(tmp_path / "file" / "below", learners, Progress(step=1), keep_last=1)


def test_a_full_disk_leaves_the_older_checkpoint_alone(tmp_path, policy, optimizer, learners):
    folder = save_checkpoint(tmp_path, learners, Progress(step=1), keep_last=1)
    with small_files_only(), pytest.raises(RecordError, match="could not be written"):
        save_checkpoint(tmp_path, learners, Progress(step=2), keep_last=1)
    assert checkpoints(tmp_path) == [folder]
    assert fingerprint(load_policy(str(folder))) == fingerprint(policy)
