import re
from pathlib import Path

import pytest

from earned.errors import RecordError
from earned.records.run_folder import create_run_folder, require_free, run_database, run_of_checkpoint
from earned.records.writer import RecordWriter


def test_a_run_without_a_name_is_called_after_its_recipe_and_the_time(tmp_path):
    folder = create_run_folder(tmp_path / "runs", None, "tiny_sums", overwrite=False)
    assert folder.is_dir() and folder.parent == tmp_path / "runs"
    assert re.fullmatch(r"tiny_sums-\d{8}-\d{6}", folder.name)


def test_runs_started_in_the_same_second_get_different_folders(tmp_path):
    folders = [create_run_folder(tmp_path, None, "tiny", overwrite=False) for _ in range(20)]
    assert len(set(folders)) == 20
    assert any(re.fullmatch(r"tiny-\d{8}-\d{6}-2", folder.name) for folder in folders)


def test_a_named_folder_is_made_and_an_empty_one_is_used(tmp_path):
    assert create_run_folder(tmp_path, "mine", "tiny", overwrite=False) == tmp_path / "mine"
    assert create_run_folder(tmp_path, "mine", "tiny", overwrite=False) == tmp_path / "mine"


def test_a_run_that_exists_is_kept_unless_it_is_said_to_go(tmp_path):
    folder = create_run_folder(tmp_path, "mine", "tiny", overwrite=False)
    RecordWriter(run_database(folder)).close()
    with pytest.raises(RecordError, match=r"mine: this run exists already; --resume .* --overwrite"):
        create_run_folder(tmp_path, "mine", "tiny", overwrite=False)
    assert run_database(folder).is_file()
    assert create_run_folder(tmp_path, "mine", "tiny", overwrite=True) == folder
    assert list(folder.iterdir()) == []


def test_overwriting_deletes_nothing_but_runs(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("three years of work")
    with pytest.raises(RecordError, match=r"no run\.sqlite in this folder"):
        create_run_folder(tmp_path, "thesis", "tiny", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.tex").is_file()


@pytest.mark.parametrize("name", ["../mine", "a/b", "..", ".", "", "/mine"])
def test_a_name_cannot_lead_elsewhere(tmp_path, name):
    with pytest.raises(RecordError, match="plain name"):
        create_run_folder(tmp_path / "runs", name, "tiny", overwrite=True)


@pytest.mark.parametrize("name", ["mine", None])
def test_a_place_that_cannot_be_written_is_named_with_the_reason(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"file/runs: a run folder cannot be made here: Not a directory"):
        create_run_folder(tmp_path / "file" / "runs", name, "tiny", overwrite=False)


def test_a_file_with_the_name_of_the_run_is_not_deleted(tmp_path):
    (tmp_path / "mine").write_text("a file")
    with pytest.raises(RecordError, match="File exists"):
        create_run_folder(tmp_path, "mine", "tiny", overwrite=True)
    assert (tmp_path / "mine").read_text() == "a file"


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_would_be_refused_is_refused_before_anything_is_made(tmp_path, overwrite):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("three years of work")
    for root, name in ((tmp_path, "thesis"), (tmp_path, "../a"), (tmp_path / "thesis" / "chapter.tex" / "runs", None)):
        with pytest.raises(RecordError):
            require_free(root, name, overwrite=overwrite)
    require_free(tmp_path / "runs", "mine", overwrite=overwrite)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]


def test_the_run_of_a_checkpoint_is_found_from_its_folder(tmp_path, monkeypatch):
    run = create_run_folder(tmp_path / "runs", "a", "tiny", overwrite=False)
    checkpoint = run / "checkpoints" / "step_000002"
    checkpoint.mkdir(parents=True)
    assert run_of_checkpoint(checkpoint) is None, "a folder like it, but of no run"
    RecordWriter(run_database(run)).close()
    assert run_of_checkpoint(checkpoint) == run
    (tmp_path / "best").symlink_to(checkpoint)
    monkeypatch.chdir(run / "checkpoints")
    for path in ("step_000002", "../checkpoints/step_000002", tmp_path / "best"):
        assert run_of_checkpoint(Path(path)) == run
    for path in ("tiny", "step_000004", run, "HuggingFaceTB/SmolLM2-135M"):
        assert run_of_checkpoint(Path(path)) is None
