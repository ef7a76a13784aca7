import getpass
import json
import os
import socket
import subprocess
import sys
from datetime import datetime

import pytest

import earned
from earned.records.environment import describe_environment, write_environment

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_the_file_holds_what_was_described(tmp_path):
    written = json.loads(write_environment(tmp_path).read_text())
    assert written["earned"] == earned.__version__
    assert written["python"] == ".".join(map(str, sys.version_info[:3]))
    assert written["packages"]["numpy"] and written["cpu"]["model"]
    assert written["memory_bytes"] > 2**20
    assert datetime.fromisoformat(written["started"]).utcoffset().total_seconds() == 0


def test_no_variable_host_name_or_home_folder_is_stored(tmp_path):
    home = tmp_path / "some-user"
    script = (
        "import sys; sys.argv = [sys.argv[1] + '/bin/earned', 'train', '--out=' + sys.argv[1] + '/runs']\n"
        "import json; from earned.records.environment import describe_environment\n"
        "print(json.dumps(describe_environment()))"
    )
    variables = {**os.environ, "HOME": str(home), "USER": "some-user", "API_KEY": "very-secret"}
    text = subprocess.run(
        [sys.executable, "-c", script, str(home)],
        env=variables,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert json.loads(text)["command"] == ["earned", "train", "--out=~/runs"]
    for private in ("some-user", "very-secret", str(home), socket.gethostname()):
        assert private not in text
    assert getpass.getuser() not in text.split('"')


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def loose(git):
    write(git / "HEAD", "ref: refs/heads/main\n")
    write(git / "refs" / "heads" / "main", f"{COMMIT}\n")


def packed(git):
    write(git / "HEAD", "ref: refs/heads/main\n")
    write(
        git / "packed-refs", f"# pack-refs with: peeled\n{'f' * 40} refs/heads/other/main2\n{COMMIT} refs/heads/main\n"
    )


def detached(git):
    write(git / "HEAD", f"{COMMIT}\n")


@pytest.mark.parametrize("state", [loose, packed, detached])
def test_the_commit_is_found_from_a_folder_below(tmp_path, monkeypatch, state):
    state(tmp_path / ".git")
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert describe_environment()["git"] == {"commit": COMMIT, "dirty": None}


def test_the_commit_of_a_linked_worktree_is_found(tmp_path, monkeypatch):
    loose(tmp_path / "main" / ".git")
    write(tmp_path / "main" / ".git" / "worktrees" / "side" / "HEAD", "ref: refs/heads/main\n")
    write(tmp_path / "main" / ".git" / "worktrees" / "side" / "commondir", "../..\n")
    write(tmp_path / "side" / ".git", f"gitdir: {tmp_path}/main/.git/worktrees/side\n")
    monkeypatch.chdir(tmp_path / "side")
    assert describe_environment()["git"]["commit"] == COMMIT


def test_a_repository_without_a_commit_has_none(tmp_path, monkeypatch):
    write(tmp_path / ".git" / "HEAD", "ref: refs/heads/main\n")
    monkeypatch.chdir(tmp_path)
    assert describe_environment()["git"]["commit"] is None
