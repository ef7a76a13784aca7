"""Models known by name: which there are, and that only a whole one is used."""

import json
import shutil
from pathlib import Path

import pytest

from earned.cli.main import main
from earned.errors import PolicyError
from earned.policy.catalog import (
    BUILT_IN,
    CATALOG,
    WEIGHTS,
    catalog_rows,
    file_sha256,
    find_model,
    home,
    is_whole,
    model_folder,
    pulled_folder,
    unfinished_folder,
    write_origin,
)
from earned.policy.load import fingerprint, load_policy

NAME = "smollm2-135m"
PROVENANCE = Path(__file__).parents[2] / "docs" / "provenance.md"


@pytest.fixture(autouse=True)
def models(monkeypatch, tmp_path):
    monkeypatch.setenv("EARNED_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "models"


@pytest.fixture
def pulled(models):
    """The built-in model in the place of the pulled one."""
    folder = models / NAME
    shutil.copytree(BUILT_IN / "tiny", folder)
    write_origin(folder, "a test")
    return folder


def cut_short(file):
    file.write_bytes(file.read_bytes()[:-1000])


def row_of(name):
    return next(row for row in catalog_rows() if row.name == name)


def test_where_models_are_kept(monkeypatch, tmp_path):
    assert model_folder(NAME) == tmp_path / "home" / "models" / NAME
    monkeypatch.setenv("EARNED_HOME", "~/models of mine")
    assert home() == Path.home() / "models of mine"
    monkeypatch.delenv("EARNED_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert home() == tmp_path / "cache" / "earned"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert home() == Path.home() / ".cache" / "earned"


def test_the_built_in_model_is_listed_with_its_hash():
    row = row_of("tiny")
    assert row.folder == BUILT_IN / "tiny" and row.bytes == (BUILT_IN / "tiny" / WEIGHTS).stat().st_size
    assert row.sha256 is not None and row.sha256 in PROVENANCE.read_text(encoding="utf-8")


def test_every_source_is_in_the_provenance():
    text = PROVENANCE.read_text(encoding="utf-8")
    for model in CATALOG.values():
        assert model.name in text and model.licence in text
        assert all(source.sha256 in text for source in model.sources)


def test_a_model_that_is_not_there():
    row = row_of(NAME)
    assert (row.folder, row.bytes, row.sha256, row.source) == (None, None, None, None)
    with pytest.raises(PolicyError, match=f"'{NAME}': not pulled yet. Run: earned models pull {NAME}"):
        load_policy(NAME)


def test_an_unfinished_model_is_not_used():
    shutil.copytree(BUILT_IN / "tiny", unfinished_folder(NAME))
    with pytest.raises(PolicyError, match="only half pulled"):
        load_policy(NAME)
    assert row_of(NAME).folder is None


def test_a_model_without_its_last_file_is_not_used(pulled):
    (pulled / "origin.json").unlink()
    with pytest.raises(PolicyError, match="only half pulled"):
        pulled_folder(NAME)
    assert not is_whole(pulled)


def test_a_whole_model_is_used_and_listed(pulled):
    assert fingerprint(load_policy(NAME)) == fingerprint(load_policy("tiny"))
    row = row_of(NAME)
    assert (row.folder, row.source, row.sha256) == (pulled, "a test", file_sha256(pulled / WEIGHTS))


def test_a_model_that_was_cut_short_is_refused_and_listed_as_damaged(pulled):
    assert is_whole(pulled)
    cut_short(pulled / WEIGHTS)
    assert not is_whole(pulled)
    assert row_of(NAME).source == f"damaged, run: earned models pull {NAME}"
    with pytest.raises(PolicyError, match=f"Mend it with: earned models pull {NAME}"):
        load_policy(NAME)


def test_an_unknown_name():
    with pytest.raises(PolicyError, match=f"Did you mean '{NAME}'"):
        find_model("smolm2-135m")
    with pytest.raises(PolicyError, match=f"no such folder, .*Did you mean '{NAME}'"):
        load_policy("smolm2-135m")


def test_the_list_as_text_and_as_json(capsys, pulled):
    main(["models", "list"])
    text = capsys.readouterr().out
    assert "tiny" in text and "1.7 MB" in text and "Apache-2.0" in text
    assert f"{NAME}: a test, in {pulled}" in text.replace("\n", " ")
    main(["models", "list", "--json"])
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows[NAME]["folder"] == str(pulled) and rows["tiny"]["sha256"] == file_sha256(BUILT_IN / "tiny" / WEIGHTS)


def test_the_list_says_what_can_be_pulled(capsys):
    main(["models", "list"])
    assert "earned models pull" in capsys.readouterr().out
