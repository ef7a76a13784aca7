"""A user's mistake costs one sentence: exit code 2, no traceback, nothing written."""

import re

import pytest

TRAIN = ("train", "recipe.toml")
EVAL = ("eval", "model")

EARLY = {
    "no such recipe": (("train", "nowhere.toml"), r"nowhere\.toml: no such recipe file"),
    "a folder as recipe": (("train", "model"), r"model: no such recipe file"),
    "malformed TOML": (("train", "broken.toml"), r"broken\.toml: not valid TOML: .*line 2"),
    "not even text": (("train", "binary.toml"), r"binary\.toml: not valid TOML"),
    "unknown key": ((*TRAIN, "--optim.learning-rat", "1"), r"optim\.learning_rat: unknown key\. .*'learning_rate'\?"),
    "unknown table": ((*TRAIN, "--optm.betas", "[0.9, 0.9]"), r"optm: unknown key\. Did you mean 'optim'\?"),
    "unknown key in a part": ((*TRAIN, "--rewards.luck.wait", "2"), r"rewards\.luck\.wait: unknown key.* 'weight'\?"),
    "a word for a number": ((*TRAIN, "--steps", "many"), r"steps: .*valid integer.*'many'"),
    "a number below its bound": ((*TRAIN, "--sampling.group-size", "0"), r"sampling\.group_size: .*, not 0"),
    "a word that is none of the allowed": ((*TRAIN, "--optim.precision", "half"), r"optim\.precision: .*'bfloat16'"),
    "a value as table": ((*TRAIN, "--steps.many", "1"), r"steps\.many: steps is a value, not a table"),
    "a tail cut off in training": ((*TRAIN, "--sampling.top-p", "0.9"), r"sampling\.top_p: refused in training, where"),
    "no reward at all": (("train", "bare.toml"), r"rewards: no part given; add for example \[rewards\.answer\] with"),
    "no rewards table": (("train", "empty.toml"), r"rewards: required, but not given"),
    "a learning rate of zero": ((*TRAIN, "--optim.learning-rate", "0"), r'rewards\.allow = \["zero_learning_rate"\]'),
    "more prompts than problems": ((*TRAIN, "--problems.train", "2"), r"prompts_per_step: 4 is more than the 2 train"),
    "a flag without a value": ((*TRAIN, "--steps"), r"--steps: a value is missing"),
    "an unknown flag without a value": ((*TRAIN, "--fast"), r"--fast: a value is missing"),
    "a word too many": ((*TRAIN, "quickly"), r"'quickly': not understood here"),
    "an option without its value": ((*TRAIN, "--run"), r"--run requires an argument"),
    "no recipe": (("train",), r"requires an argument"),
    "unknown verb": (("trian",), r'Unknown command "trian"\. Did you mean "train"\?'),
    "resume which run": ((*TRAIN, "--resume"), r"--resume: say which run with --run NAME"),
    "resume and overwrite": ((*TRAIN, "--run", "a", "--resume", "--overwrite"), r"choose one"),
    "show what is not there": (("runs", "show", "runs/nowhere"), r"runs/nowhere: there is no run here"),
    "show what is no run": (("runs", "show", "."), r"there is no run here"),
    "list what is not there": (("runs", "list", "nowhere"), r"nowhere: there is no such folder of runs"),
    "evaluate no samples": (("eval", "model", "--samples", "0"), r"samples: .*, not 0"),
    "evaluate no tokens": (("eval", "model", "--max-new-tokens", "0"), r"max_new_tokens: .*, not 0"),
    "evaluate frozen": (("eval", "model", "--temperature", "-1"), r"temperature: .*, not -1"),
    "evaluate after no examples": ((*EVAL, "--few-shot", "a.jsonl", "--shots", "0"), r"few_shot\.shots: .*, not 0"),
    "examples without a file": ((*EVAL, "--few-shot.options.prompt", "q"), r"few_shot\.source: required"),
    "a table of another kind": ((*EVAL, "--table", "table.csv"), r"table\.csv: .* has to end in \.parquet"),
    "a table in no folder": ((*EVAL, "--table", "no/table.parquet"), r"there is no folder no to write the table into"),
    "a table over something": ((*EVAL, "--table", "kept.parquet"), r"kept\.parquet: exists already"),
    "pretrain where": (("pretrain", "recipe.toml"), r"--output requires an argument"),
    "pretrain by a recipe for train": (("pretrain", "recipe.toml", "-o", "new"), r"phases: required"),
}
"""Found before torch is imported."""

LATE = {
    "model without tokeniser": ((*TRAIN, "--model", "mute"), r"model 'mute': the folder holds no tokeniser"),
    "a folder without a model": ((*TRAIN, "--model", "."), r"model '\.': the folder holds no config\.json"),
    "unknown model": ((*TRAIN, "--model", "tinny"), r"model 'tinny': no such folder, and not built in"),
    "damaged model": ((*TRAIN, "--model", "damaged"), r"model 'damaged': is no loadable causal language model"),
    "one attempt at a problem": ((*TRAIN, "--sampling.group-size", "1"), r"sampling\.group_size: 1, .*single_sample"),
    "prompts that do not fit": ((*TRAIN, "--sampling.max-new-tokens", "9999"), r"more than the 256 tokens of context"),
    "unknown source": ((*TRAIN, "--problems.source", "sum"), r"unknown source 'sum'.* Did you mean 'sums'\?"),
    "unknown option": ((*TRAIN, "--problems.options.term", "[2, 2]"), r"problems\.options\.term: unknown key"),
    "too few problems": ((*TRAIN, "--problems.held-out", "500"), r"problems\.held_out: the source has too few"),
    "unknown check": ((*TRAIN, "--rewards.luck.check", "randon"), r"unknown check 'randon'.* Did you mean 'random'\?"),
    "unknown check of answers": ((*TRAIN, "--evaluation.check", "numbr"), r"unknown check 'numbr'"),
    "no control beside it": ((*TRAIN, "--evaluation.check", "randon"), r"allowed: .*'exact', .*'reasoning_gym', or a function"),
    "answers judged by chance": ((*TRAIN, "--evaluation.check", "random"), r"'random' does not compare with the right"),
    "evaluate by a constant": (("eval", "model", "--check", "constant"), r"'constant' does not compare with the right"),
    "evaluate by length": (("eval", "model", "--check", "length"), r"'length' does not compare with the right"),
    "a control that is not named": ((*TRAIN, "--rewards.allow", "[]"), r'rewards\.allow = \["random_reward"\]'),
    "unknown algorithm": ((*TRAIN, "--algorithm.name", "gpro"), r"algorithm\.name: no 'gpro'\. Did you mean 'grpo'\?"),
    "unknown part": ((*TRAIN, "--algorithm.divergence", "k9"), r"algorithm\.divergence: no 'k9'"),
    "runs below a file": ((*TRAIN, "--runs", "recipe.toml/runs"), r"a run folder cannot be made here: Not a directory"),
    "a path as the run's name": ((*TRAIN, "--run", "../a"), r"run name '\.\./a': give a plain name"),
    "resume what is not there": ((*TRAIN, "--run", "a", "--resume"), r"runs/a: there is no run here to resume"),
    "overwrite what is no run": ((*TRAIN, "--runs", ".", "--run", "kept", "--overwrite"), r"deletes only runs"),
    "resume seeds that are not there": (
        (*TRAIN, "--run", "a", "--resume", "--seeds", "2"),
        r"runs/a-seed0: there is no run here to resume, nor of another seed",
    ),
    "no seeds": ((*TRAIN, "--seeds", "0"), r"seeds: 1 or more, not 0"),
    "a path as the name of seeds": ((*TRAIN, "--run", "../a", "--seeds", "2"), r"'\.\./a-seed0': give a plain name"),
    "evaluate no model": (("eval", "nowhere"), r"model 'nowhere': no such folder"),
    "evaluate nothing": (("eval", "model", "--limit", "-1"), r"limit: at least 1 problem, not -1"),
    "evaluate on nothing": (("eval", "model", "--held-out", "0"), r"0 problems, so there is nothing to evaluate"),
    "evaluate on what": (("eval", "model", "--problems", "some"), r"unknown source 'some'"),
    "evaluate by what": (("eval", "model", "--check", "nmber"), r"unknown check 'nmber'"),
    "examples that are not there": ((*EVAL, "--few-shot", "a.jsonl"), r"few_shot: a\.jsonl: no such file"),
    "examples from a built-in": ((*EVAL, "--few-shot", "sums"), r"few_shot\.source: 'sums' is built in"),
    "evaluate too long": (("eval", "model", "--max-new-tokens", "999"), r"more than the 256 tokens of context"),
    "pretrain over something": (("pretrain", "base.toml", "-o", "kept"), r"kept: exists already"),
    "pretrain below a file": (("pretrain", "base.toml", "-o", "recipe.toml/a"), r"cannot be written here: Not a direc"),
    "pretrain on what": (("pretrain", "base.toml", "-o", "new", "--data.options.digit", "1"), r"digit: unknown key"),
    "pretrain on another source": (
        ("pretrain", "base.toml", "-o", "new", "--data.source", "x"),
        r"data\.source: .*'x'",
    ),
}


@pytest.fixture
def crowded(workplace, saved_model):
    """The workplace with everything a mistake may point to."""
    (workplace / "broken.toml").write_text("steps = 2\nmodel = \n")
    (workplace / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (workplace / "bare.toml").write_text("[rewards]\n")
    (workplace / "empty.toml").write_text("")
    (workplace / "base.toml").write_text("[[phases]]\nsteps = 1\nlong_share = 0.5\n")
    (workplace / "kept.parquet").write_text("a table of yesterday")
    (workplace / "kept").mkdir()
    (workplace / "kept" / "thesis.txt").write_text("years of work")
    for name, left_out in (("mute", "tokenizer"), ("damaged", "model")):
        (workplace / name).mkdir()
        for file in saved_model.iterdir():
            if not file.name.startswith(left_out):
                (workplace / name / file.name).write_bytes(file.read_bytes())
    return workplace


def files(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def require_a_sentence(ended, message):
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    text = " ".join(re.sub(r"[│╭╰╮╯─]", " ", ended.err).split())
    assert re.search(message, text), text
    assert len(ended.err.splitlines()) <= 8


@pytest.mark.parametrize(("words", "message"), [*EARLY.values(), *LATE.values()], ids=[*EARLY, *LATE])
def test_a_mistake_costs_one_sentence(earned, crowded, words, message):
    before = files(crowded)
    require_a_sentence(earned(*words), message)
    assert files(crowded) == before


@pytest.mark.parametrize("name", ["malformed TOML", "unknown key", "unknown verb", "show what is not there"])
def test_in_a_process_of_its_own_it_is_the_same(process, crowded, name):
    words, message = EARLY[name]
    require_a_sentence(process(*words), message)


def test_a_message_is_shown_as_it_is(earned, workplace):
    """Square brackets are markup to the library that prints, and words of ours to the reader."""
    ended = earned("train", "[/bold] and [red].toml")
    assert ended.code == 2 and "[/bold] and [red].toml: no such recipe file" in ended.err


def test_a_run_that_exists_is_refused_overwritten_or_resumed(earned, workplace):
    words = (*TRAIN, "--run", "a", "--steps", "1", "--problems.validation", "0")
    assert earned(*words).code == 0
    before = files(workplace)
    require_a_sentence(earned(*words), r"runs/a: this run exists already; --resume continues it, --overwrite deletes")
    require_a_sentence(earned(*words, "--overwrite", "--sampling.max-new-tokens", "9999"), "tokens of context")
    require_a_sentence(earned(*words, "--resume", "--seed", "7"), "the run was started with another recipe")
    assert files(workplace) == before, "a mistake deletes nothing"
    (workplace / "runs" / "a" / "old").touch()
    assert earned(*words, "--resume").code == 0
    assert (workplace / "runs" / "a" / "old").exists()
    assert earned(*words, "--overwrite").code == 0
    assert not (workplace / "runs" / "a" / "old").exists()


def test_one_attempt_is_allowed_when_it_is_meant(earned, workplace):
    allow = '["random_reward", "single_sample"]'
    ended = earned(*TRAIN, "--steps", "1", "--sampling.group-size", "1", "--rewards.allow", allow)
    assert ended.code == 0
    assert "the weights did not change" in ended.out
