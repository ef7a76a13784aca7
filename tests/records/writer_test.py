import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

from earned.errors import RecordError
from earned.records.reader import RunReader
from earned.records.writer import RecordWriter


def journal_mode(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA journal_mode").fetchone()[0]


def dump(path):
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_closing_leaves_one_file_outside_wal_mode(database, record_step):
    with RecordWriter(database) as records:
        record_step(records, 1)
        records.flush()
        assert {path.name for path in database.parent.iterdir()} > {"run.sqlite"}
        assert journal_mode(database) == "wal"
    assert [path.name for path in database.parent.iterdir()] == ["run.sqlite"]
    assert journal_mode(database) == "delete"


def test_a_reader_sees_what_is_flushed_while_the_run_goes_on(database, record_step):
    with RecordWriter(database) as records:
        reader = RunReader(database)
        assert reader.steps() == []
        for step in (1, 2):
            record_step(records, step)
            records.flush()
            assert [row.step for row in reader.steps()] == list(range(1, step + 1))
            assert len(reader.completions(step=step)) == 3
    assert [path.name for path in database.parent.iterdir()] == ["run.sqlite"]


def test_what_is_flushed_is_in_the_file_and_not_only_in_its_log(database, record_step):
    with RecordWriter(database) as records:
        record_step(records, 1)
        records.flush()
        without_log = f"{database.as_uri()}?immutable=1"
        with closing(sqlite3.connect(without_log, uri=True)) as connection:
            assert connection.execute("SELECT step FROM steps").fetchall() == [(1,)]


def test_closing_waits_for_a_reader_that_is_looking(database, record_step):
    records = RecordWriter(database)
    record_step(records, 1)
    records.flush()
    looking = sqlite3.connect(database, check_same_thread=False)
    looking.execute("SELECT * FROM steps").fetchall()
    leaving = threading.Timer(0.3, looking.close)
    leaving.start()
    records.close()
    leaving.join()
    assert [path.name for path in database.parent.iterdir()] == ["run.sqlite"]
    assert journal_mode(database) == "delete"
    assert [row.step for row in RunReader(database).steps()] == [1]


def test_a_full_queue_makes_the_caller_wait_and_loses_nothing(database):
    texts = [f"event {number}" for number in range(200)]
    with RecordWriter(database, queue_size=1) as records, closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        caller = threading.Thread(target=lambda: [records.event(0, "note", text, {}) for text in texts])
        caller.start()
        caller.join(0.3)
        assert caller.is_alive(), "nothing can be written and the queue holds one, so the caller should be waiting"
        other.rollback()
        caller.join()
        assert records.queue_waits > 0
    assert [event.text for event in RunReader(database).events()] == texts


def test_a_roomy_queue_makes_nobody_wait(database, record_step):
    with RecordWriter(database) as records:
        record_step(records, 1)
        assert records.queue_waits == 0


def test_a_failure_to_write_surfaces_at_the_next_call_and_keeps_what_was_committed(database, record_step):
    records = RecordWriter(database)
    record_step(records, 1)
    records.flush()
    record_step(records, 1)
    with pytest.raises(RecordError, match=r"run\.sqlite: the run could not be recorded: UNIQUE constraint failed"):
        records.flush()
    with pytest.raises(RecordError, match="could not be recorded"):
        records.event(2, "note", "later", {})
    with pytest.raises(RecordError, match="could not be recorded"):
        records.close()
    assert [row.step for row in RunReader(database).steps()] == [1]


def test_nothing_is_written_after_a_failure_so_records_have_no_hole(database, record_step, group_of):
    records = RecordWriter(database)
    record_step(records, 1)
    records.flush()
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        records.rollouts(1, "train", [group_of(1, [1.0])], None, [], keep_tokens=False)
        time.sleep(0.2)
        record_step(records, 2)
        other.rollback()
    with pytest.raises(RecordError):
        records.close()
    assert [row.step for row in RunReader(database).steps()] == [1]


def test_a_failure_to_write_does_not_leave_callers_waiting(database, record_step):
    records = RecordWriter(database, queue_size=1)
    record_step(records, 1)
    with pytest.raises(RecordError):
        for _ in range(1000):
            record_step(records, 1)
    with pytest.raises(RecordError):
        records.close()


DISK_FULL = """
import resource, sys
from pathlib import Path
from earned.errors import RecordError
from earned.records.writer import RecordWriter

resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    with RecordWriter(Path(sys.argv[1])) as records:
        for number in range(1000):
            records.event(number, "note", "x" * 10_000, {})
except RecordError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_is_a_record_error(database):
    """A limit on file size fails writes as a full disk does."""
    result = subprocess.run(
        [sys.executable, "-c", DISK_FULL, str(database)], capture_output=True, text=True, timeout=60, check=True
    )
    assert f"{database}: the run could not be recorded: " in result.stdout


def test_the_error_that_ends_a_run_is_not_hidden_by_a_failed_record(database, record_step):
    with pytest.raises(KeyError, match="the real reason"), RecordWriter(database) as records:
        record_step(records, 1)
        record_step(records, 1)
        raise KeyError("the real reason")


def test_what_was_queued_when_a_run_fails_is_still_recorded(database, record_step):
    with pytest.raises(KeyError), RecordWriter(database) as records:
        record_step(records, 1)
        raise KeyError
    assert [row.step for row in RunReader(database).steps()] == [1]


def test_a_closed_writer_takes_nothing_more(database):
    records = RecordWriter(database)
    records.close()
    records.close()
    with pytest.raises(RecordError, match="closed"):
        records.meta("status", "running")


def test_an_existing_record_is_not_written_over(database, record_step):
    with RecordWriter(database) as records:
        record_step(records, 1)
    before = dump(database)
    with pytest.raises(RecordError, match=r"--resume.*--overwrite"):
        RecordWriter(database)
    assert dump(database) == before


def test_only_a_record_can_be_resumed(database):
    with pytest.raises(RecordError, match="no record of a run to resume"):
        RecordWriter(database, resume=True)
    database.write_text("notes, not records " * 50)
    with pytest.raises(RecordError, match="cannot be read as the record of a run"):
        RecordWriter(database, resume=True)
    assert database.read_text() == "notes, not records " * 50


def test_a_folder_that_is_not_there_is_a_record_error(tmp_path):
    with pytest.raises(RecordError, match="unable to open"):
        RecordWriter(tmp_path / "gone" / "run.sqlite")


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, record_step):
    straight, resumed = tmp_path / "straight.sqlite", tmp_path / "resumed.sqlite"
    with RecordWriter(straight) as records:
        for step in range(1, 9):
            record_step(records, step)
    with RecordWriter(resumed) as records:
        for step in range(1, 8):
            record_step(records, step)
    with RecordWriter(resumed, resume=True) as records:
        records.truncate_after(5)
        for step in (6, 7, 8):
            record_step(records, step)
    assert dump(resumed) == dump(straight)


def test_truncating_forgets_later_steps_in_every_table(tmp_path, record_step):
    short, cut = tmp_path / "short.sqlite", tmp_path / "cut.sqlite"
    for path, steps in ((short, 5), (cut, 8)):
        with RecordWriter(path) as records:
            for step in range(1, steps + 1):
                record_step(records, step)
    assert dump(cut) != dump(short)
    with RecordWriter(cut, resume=True) as records:
        records.truncate_after(5)
    assert dump(cut) == dump(short)


def test_a_killed_run_keeps_what_was_flushed(database):
    script = (
        "import os, sys; from pathlib import Path; from earned.records.writer import RecordWriter\n"
        "records = RecordWriter(Path(sys.argv[1])); records.event(1, 'note', 'kept', {}); records.flush()\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(database)], timeout=60).returncode == -9
    assert [event.text for event in RunReader(database).events()] == ["kept"]
    with RecordWriter(database, resume=True) as records:
        records.event(2, "note", "resumed", {})
    assert [event.text for event in RunReader(database).events()] == ["kept", "resumed"]
    assert [path.name for path in database.parent.iterdir()] == ["run.sqlite"]
