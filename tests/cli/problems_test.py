import json

import pytest

from earned.cli.main import main


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.fixture
def sums(tmp_path):
    rows = [{"question": f"{n}+{n}=", "answer": str(2 * n)} for n in range(50)]
    return lines(tmp_path / "my.jsonl", [*rows, rows[0], {"question": "x", "answer": "[many]"}])


def test_it_shows_five_problems_the_counts_the_columns_and_the_lint(sums, capsys):
    main(["problems", sums])
    shown = capsys.readouterr().out
    assert all(f" {n}+{n}= " in shown for n in range(5)) and " 5+5= " not in shown
    assert "52 rows; prompt from 'question'; gold from 'answer', as it stands" in shown
    assert "51 problems: " in shown and " held-out" in shown
    assert "1 row left out (line 51): the same prompt and gold as an earlier row" in shown
    assert "1 row kept (line 52): a gold that the check cannot read" in shown


def test_json_is_one_line(sums, capsys):
    main(["problems", sums, "--json", "--limit", "2"])
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert (row["rows"], row["problems"], sum(row["counts"].values())) == (52, 51, 51)
    assert [(each["line"], each["prompt"], each["gold"]) for each in row["examples"]] == [
        (1, "0+0=", "0"),
        (2, "1+1=", "2"),
    ]
    assert [(each["kind"], each["numbers"], each["left_out"]) for each in row["findings"]] == [
        ("duplicate", [51], True),
        ("unreadable_gold", [52], False),
    ]


def test_the_check_decides_which_gold_can_be_read(sums, capsys):
    main(["problems", sums, "--check", "exact", "--json"])
    assert [each["kind"] for each in json.loads(capsys.readouterr().out)["findings"]] == ["duplicate"]


def test_against_another_file(sums, tmp_path, capsys):
    other = lines(tmp_path / "evaluation.jsonl", [{"problem": "3+3=", "answer": "6"}])
    main(["problems", sums, "--against", other])
    assert "1 row kept (line 4): a prompt that the other file has too" in capsys.readouterr().out


def test_columns_by_flag(tmp_path, capsys):
    path = lines(tmp_path / "my.jsonl", [{"text": "2+2?", "label": 4}])
    main(["problems", path, "--options.prompt", "text", "--options.answer", "label"])
    assert "1 row; prompt from 'text'; gold from 'label'" in capsys.readouterr().out


def test_built_in_problems(capsys):
    main(["problems", "sums", "--options.terms", "[2, 2]", "--limit", "3", "--json"])
    row = json.loads(capsys.readouterr().out)
    assert row["rows"] is None and len(row["examples"]) == 3
    main(["problems", "sums"])
    assert "made without end" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.jsonl"], "absent.jsonl: no such file"),
        (
            ["sum"],
            "problems.source: unknown source 'sum'. Allowed: 'sums', 'addition', 'countdown', 'reasoning_gym:NAME', a",
        ),
        (["sums", "--check", "random"], "--check: 'random' compares with no gold answer, allowed: 'number', 'exact'"),
        (["bad.jsonl"], "bad.jsonl, line 2: not JSON"),
        (["strange.jsonl"], "Found: [a], b. Accepted: prompt,"),
    ],
)
def test_mistakes_are_sentences_and_exit_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"question": "a", "answer": 1}\n{"question\n')
    lines(tmp_path / "strange.jsonl", [{"[a]": 1, "b": 2}])
    with pytest.raises(SystemExit) as exit:
        main(["problems", *arguments])
    shown = capsys.readouterr()
    assert exit.value.code == 2
    assert message in shown.err and "Traceback" not in shown.err and shown.out == ""
