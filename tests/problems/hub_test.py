import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from earned.errors import RecipeError
from earned.problems.hub import REACH_SECONDS, hub_table

COMMAND = [sys.executable, "-m", "earned", "problems", "someone/something:main"]


def asked(endpoint, command=COMMAND):
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_a_hub_that_is_not_there_says_so_at_once_and_names_the_alternatives():
    pytest.importorskip("datasets")
    # Both libraries are imported first, so that the time is that of the attempt.
    program = """
import time
import datasets, huggingface_hub
from earned.cli.main import main
start = time.monotonic()
try:
    main(["problems", "someone/something:main"])
finally:
    print(time.monotonic() - start)
"""
    done = asked("http://127.0.0.1:9", [sys.executable, "-c", program])
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert float(done.stdout) < REACH_SECONDS + 1, "the library alone tries for more than 20 seconds"
    assert "someone/something:main: the hub cannot be reached: " in done.stderr
    assert "Instead: a file (.jsonl, .json, .csv, .parquet); a copy in the local cache" in done.stderr


def test_a_hub_without_the_data_set_says_so():
    pytest.importorskip("datasets")

    class NothingHere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), NothingHere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = asked(f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert done.returncode == 2
    assert "the hub has no such data set" in done.stderr


def test_without_the_library_the_extra_is_named():
    program = """
import sys
sys.modules["datasets"] = None
from earned.cli.main import main
main(["problems", "someone/something"])
"""
    done = asked("http://127.0.0.1:9", [sys.executable, "-c", program])
    assert done.returncode == 2
    assert "no such file, and reading it from the hub needs `datasets`" in done.stderr
    assert 'pip install "earned[data]"' in done.stderr


def test_rows_of_one_of_the_hubs_splits(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = [{"question": "2+2?", "answer": "#### 4"}, {"question": "3+3?", "answer": "#### 6"}]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = datasets.load_dataset("json", data_files={"test": str(tmp_path / "test.jsonl")}, cache_dir=str(tmp_path))
    table = hub_table("someone/something", data, "test")
    assert [(row.number, dict(row.columns)) for row in table.rows] == [(1, rows[0]), (2, rows[1])]
    with pytest.raises(RecipeError, match=r"problems\.options\.split: .* has no split 'train', only 'test'"):
        hub_table("someone/something", data, "train")
