import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from threading import Thread

import pytest

from earned.errors import RecordError
from earned.records.process_mark import has_ended, own_mark
from earned.records.reader import RunReader, find_runs
from earned.records.schema import PROCESS
from earned.records.writer import RecordWriter
from earned.vocabulary import EvaluationResult, Split


def held_out(step, mean):
    return EvaluationResult(
        step=step,
        split=Split.HELD_OUT,
        problems=8,
        units=8,
        samples=4,
        mean=mean,
        low=0.0,
        high=1.0,
        greedy=mean,
        pass_at_k=mean,
        maj_at_k=mean,
        length_mean=3.0,
        truncated_share=0.0,
    )


def test_a_missing_file_is_said_to_be_missing(database):
    with pytest.raises(RecordError, match=r"run\.sqlite: there is no record of a run here"):
        RunReader(database)
    assert not database.exists()


def test_a_file_of_something_else_is_refused(database):
    database.write_text("notes " * 200)
    with pytest.raises(RecordError, match="cannot be read as the record of a run"):
        RunReader(database)


@pytest.mark.parametrize("sql", ["CREATE TABLE cats (name)", "CREATE TABLE meta (key, value)"])
def test_a_database_of_something_else_is_refused(database, sql):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(sql)
    with pytest.raises(RecordError, match="the record of a run"):
        RunReader(database)


def test_a_newer_record_is_refused_with_both_versions(database):
    RecordWriter(database).close()
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE meta SET value = '4' WHERE key = 'schema_version'")
    for opening in (RunReader, lambda path: RecordWriter(path, resume=True)):
        with pytest.raises(RecordError, match="version 4, this earned reads version 3"):
            opening(database)


def test_a_run_folder_is_as_good_as_its_file(recorded):
    assert RunReader(recorded.path.parent).steps() == recorded.steps()


def test_a_path_with_special_characters_can_be_read(tmp_path, record_step):
    folder = tmp_path / "50% of? #1"
    folder.mkdir()
    with RecordWriter(folder / "run.sqlite") as records:
        record_step(records, 1)
    assert len(RunReader(folder).steps()) == 1


def test_a_reader_can_be_asked_from_another_thread(recorded):
    answers = []
    thread = Thread(target=lambda: answers.append(recorded.steps()))
    thread.start()
    thread.join()
    assert answers == [recorded.steps()]


def test_reading_changes_nothing(recorded):
    before = recorded.path.read_bytes()
    recorded.completions(order="reward")
    assert recorded.path.read_bytes() == before
    assert len(list(recorded.path.parent.iterdir())) == 1


def test_runs_are_found_with_their_first_and_last_accuracy(tmp_path, record_step):
    for name, means in (("b", [0.25, 0.5, 0.75]), ("a", [])):
        (tmp_path / name).mkdir()
        with RecordWriter(tmp_path / name / "run.sqlite") as records:
            records.meta("status", f"{name} finished")
            record_step(records, 1)
            for step, mean in enumerate(means):
                records.evaluation(held_out(step, mean))
    (tmp_path / "not-a-run").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.sqlite").write_text("x" * 1000)
    found = [(run.name, run.status, run.steps, run.first_held_out, run.last_held_out) for run in find_runs(tmp_path)]
    assert found == [
        ("a", "a finished", 1, None, None),
        ("b", "b finished", 1, 0.25, 0.75),
        ("broken", "unreadable", 0, None, None),
    ]
    assert [run.path for run in find_runs(tmp_path / "a")] == [tmp_path / "a"]


RUNNING = """
import sys, time
from pathlib import Path
from earned.records.writer import RecordWriter

records = RecordWriter(Path(sys.argv[1]))
records.meta("status", "running")
records.flush()
print("running", flush=True)
time.sleep(60)
"""


@pytest.fixture
def running(database):
    """A process that is writing a record."""
    process = subprocess.Popen([sys.executable, "-c", RUNNING, str(database)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "running\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.skipif(not own_mark(), reason="this system does not tell one process from another")
class TestAKilledRun:
    def test_is_interrupted_once_its_process_is_gone(self, database, running):
        assert RunReader(database).status() == "running"
        assert [run.status for run in find_runs(database.parent)] == ["running"]
        running.kill()
        running.wait()
        assert RunReader(database).status() == "interrupted"
        assert [run.status for run in find_runs(database.parent)] == ["interrupted"]

    def test_is_interrupted_before_its_parent_has_collected_it(self, database, running):
        running.kill()
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
        assert RunReader(database).status() == "interrupted"

    def test_is_running_again_when_it_is_resumed(self, database, running):
        running.kill()
        running.wait()
        with RecordWriter(database, resume=True) as records:
            assert RunReader(database).status() == "running"
            records.meta("status", "finished")
        assert RunReader(database).status() == "finished"

    @pytest.mark.parametrize("place", [0, 1], ids=["boot", "table"])
    def test_of_another_machine_is_not_judged(self, database, running, place):
        words = RunReader(database).meta()[PROCESS].split()
        running.kill()
        running.wait()
        words[place] += "x"
        assert not has_ended(" ".join(words))
        with RecordWriter(database, resume=True) as records:
            records.meta(PROCESS, " ".join(words))
            records.flush()
            assert RunReader(database).status() == "running"


@pytest.mark.skipif(not own_mark(), reason="this system does not tell one process from another")
def test_a_number_given_to_another_process_is_no_sign_of_life():
    *words, started = own_mark().split()
    assert not has_ended(own_mark())
    assert has_ended(" ".join([*words, str(int(started) - 1)]))


@pytest.mark.parametrize("mark", ["", "nothing", "a b c d"])
def test_a_mark_that_says_nothing_ends_nothing(mark):
    assert not has_ended(mark)


def test_a_record_that_was_closed_says_nothing_about_the_process(database):
    with RecordWriter(database) as records:
        records.meta("status", "stopped")
    assert RunReader(database).meta() == {"schema_version": "3", "status": "stopped"}


def test_the_steps_that_have_completions(recorded):
    assert recorded.completion_steps("train") == [1, 2]
    assert recorded.completion_steps("held_out") == []


def test_a_folder_that_is_not_there_holds_no_runs(tmp_path):
    with pytest.raises(RecordError, match="no such folder"):
        find_runs(tmp_path / "gone")


def test_records_import_without_torch():
    script = (
        "import importlib, pkgutil, sys, earned.records as room\n"
        "for module in pkgutil.iter_modules(room.__path__): importlib.import_module(f'earned.records.{module.name}')\n"
        "print(sorted({'torch', 'transformers', 'earned.records.writer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['earned.records.writer']"
