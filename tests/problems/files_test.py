import gzip
import json
import subprocess
import sys

import pytest

from earned.errors import RecipeError
from earned.problems.files import read_file

ROWS = [{"question": "2+2?", "answer": "4"}, {"question": "a\u2028b", "answer": 7.0}]
LINES = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def numbered(table):
    return [(row.number, dict(row.columns)) for row in table.rows]


@pytest.mark.parametrize(
    ("name", "text", "unit", "numbers"),
    [
        ("a.jsonl", LINES, "line", [1, 2]),
        ("a.jsonl", LINES.replace("\n", "\r\n\r\n\n") + "\n", "line", [1, 4]),
        ("a.jsonl", "\ufeff" + LINES, "line", [1, 2]),
        ("A.JSONL", LINES, "line", [1, 2]),
        ("a.jsonl.gz", gzip.compress(LINES.encode()), "line", [1, 2]),
        ("a.json", json.dumps(ROWS, indent=1), "row", [1, 2]),
        ("a.json", json.dumps({"version": 1, "data": ROWS}), "row", [1, 2]),
        ("a.json", LINES, "line", [1, 2]),
    ],
)
def test_json_in_its_forms(tmp_path, name, text, unit, numbers):
    table = read_file(written(tmp_path / name, text))
    assert (table.unit, numbered(table)) == (unit, list(zip(numbers, ROWS, strict=True)))


def test_csv_counts_lines_of_the_file_not_records(tmp_path):
    text = 'question,answer\n"two\nlines",1\n\n"a ""quoted"", word",2\nshort\n'
    assert numbered(read_file(written(tmp_path / "a.csv", text))) == [
        (2, {"question": "two\nlines", "answer": "1"}),
        (5, {"question": 'a "quoted", word', "answer": "2"}),
        (6, {"question": "short", "answer": ""}),
    ]


def test_parquet_keeps_nested_values(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"prompt": [{"role": "user", "content": "2+2?"}], "reward_model": {"ground_truth": "4"}}] * 2
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    table = read_file(str(tmp_path / "a.parquet"))
    assert (table.unit, numbered(table)) == ("row", [(1, rows[0]), (2, rows[1])])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "", "the file holds no rows"),
        ("a.jsonl", "\n \n", "the file holds no rows"),
        ("a.jsonl", '{"a": 1}\n\n{"a": \n', "line 3: not JSON: Expecting value (column 7)"),
        ("a.jsonl", '{"a": 1}\n[1, 2]\n', "line 2: a row is a JSON object"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "line 2: not UTF-8 text"),
        ("a.jsonl", '{"a": ' + "[" * 200_000, "line 1: not readable JSON"),
        ("a.jsonl", '{"a": ' + "1" * 5000 + "}", "line 1: not readable JSON"),
        ("a.json", "", "the file is empty"),
        ("a.json", "[]", "the file holds no rows"),
        ("a.json", '[\n{"a": 1},\n{"a" 2}]', "line 3: not JSON: Expecting ':' delimiter"),
        ("a.json", '[{"a": 1}, 2]', "row 2: a row is a JSON object"),
        (
            "a.json",
            '{"train": [], "test": []}',
            'an object with the keys train, test. Accepted: a list of objects, {"data',
        ),
        ("a.json", "7", "7. Accepted: a list of objects"),
        ("a.csv", "", "the file holds no rows"),
        ("a.csv", "question,answer\n", "the file holds no rows"),
        ("a.csv", "q,a\n1,2\n1,2,3\n", "line 3: 3 fields, but the header names 2"),
        ("a.csv", "q,q\n1,2\n", "line 1: two columns of the header have the same name: q, q"),
        ("a.csv", 'q,a\n1,2\n"never closed,2\n', "line 3: not CSV: unexpected end of data"),
        ("a.csv", b"q,a\n1,2\n\xe9,2\n", "line 3: not UTF-8 text"),
        ("a.jsonl.gz", LINES, "cannot be read: Not a gzipped file"),
        ("a.jsonl.gz", gzip.compress(LINES.encode())[:30], "cannot be read"),
        ("a.txt", "2+2?", "not a kind of file that can be read. Accepted: .jsonl, .json, .csv, .parquet"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path, name, text, message):
    path = written(tmp_path / name, text)
    with pytest.raises(RecipeError) as error:
        read_file(path)
    assert str(error.value).startswith(path) and message in str(error.value)


def test_an_absent_file_and_a_folder(tmp_path):
    written(tmp_path / "problems.jsonl", LINES)
    with pytest.raises(RecipeError, match=r"no such file .*Did you mean 'problems.jsonl'\?"):
        read_file(str(tmp_path / "problem.jsonl"))
    with pytest.raises(RecipeError, match=r"no such file \(seen from .*\)\.$"):
        read_file(str(tmp_path / "no folder" / "problem.jsonl"))
    with pytest.raises(RecipeError, match="is a folder; name one file in it"):
        read_file(str(tmp_path))


def test_a_broken_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(RecipeError, match="not a Parquet file"):
        read_file(written(tmp_path / "a.parquet", "PAR1"))


def test_parquet_without_pyarrow_names_the_extra(tmp_path):
    path = written(tmp_path / "a.parquet", "PAR1")
    program = f"""
import sys
sys.modules["pyarrow"] = None
from earned.cli.main import main
main(["problems", {path!r}])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        'needs pyarrow, which is not installed; it comes with the extra `data`: pip install "earned[data]"'
        in done.stderr
    )
    assert "Traceback" not in done.stderr
