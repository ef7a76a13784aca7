"""`earned algorithms`, and the page that is made from it."""

import json
import re
from pathlib import Path

import pytest

from earned.algorithms.described import describe_parts
from earned.algorithms.named import ALGORITHMS
from earned.algorithms.parts import PARTS
from earned.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


def printed(capsys, *words):
    main(["algorithms", *words])
    return capsys.readouterr().out


def test_json_is_one_line_with_every_algorithm_and_its_parts(capsys):
    text = printed(capsys, "--json")
    rows = {row["name"]: row for row in json.loads(text)}
    assert text.count("\n") == 1 and list(rows) == list(ALGORITHMS) and len(rows) >= 16
    for row in rows.values():
        for field, table in PARTS.items():
            assert row[field] in table or (row[field] is None and field in ("divergence", "sampler_correction"))
        assert row["source"] and row["summary"]
    assert (rows["rloo"]["clip_low"], rows["rloo"]["critic"], rows["rloo"]["updates"]) == (None, None, 1)
    assert (rows["cispo"]["clip_low"], rows["cispo"]["clip_high"], rows["cispo"]["updates"]) == (None, 5.0, 4)
    assert (rows["grpo_paper"]["divergence"], rows["grpo_paper"]["divergence_weight"]) == ("k3", 0.04)
    assert rows["grpo"]["divergence_weight"] is rows["grpo"]["sampler_correction_cap"] is None
    assert rows["default"]["sampler_correction_cap"] == 2.0
    assert rows["ppo"]["critic"]["gae_lambda"] == 1.0


def test_in_words(capsys):
    text = printed(capsys)
    assert re.search(r"^reinforce_pp_baseline +centered_deviation +ppo_clip +token_mean *$", text, re.MULTILINE)
    for name, row in ALGORITHMS.items():
        assert f"\n{name}: {row.summary}\n" in text and f"\n  {row.source}\n" in text
    assert "clip_low 0.2, clip_high 0.28, 4 updates a batch, up to 3 refills, truncated left out" in text
    assert "k3 in the loss, weight 0.04" in text and "token_truncate at 2.0" in text and "value model" in text


def test_the_page_is_the_one_that_is_made_from_the_code(capsys):
    made = printed(capsys, "--markdown")
    assert PAGE.read_text(encoding="utf-8") == made, "run: earned algorithms --markdown > docs/algorithms.md"


def test_the_page_has_every_algorithm_and_part_with_formula_and_source():
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` | {row.summary} |" in page for name, row in ALGORITHMS.items())
    for parts in describe_parts().values():
        for part in parts:
            assert f"[`{part.name}`](../src/earned/algorithms/{part.module}.py)" in page
            assert "=" in part.formula or part.module == "gae", f"{part.name}: no formula"
            assert part.source and part.sentence.endswith(".")
    assert all((PAGE.parent / link).is_file() for link in re.findall(r"\]\((\S+)\)", page))
    widths = {line.replace("\\|", "").count("|") for line in page.splitlines() if line.startswith("|")}
    assert widths == {8, 5}, "a bar inside a cell would make one more"


def test_one_form_at_a_time(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["algorithms", "--json", "--markdown"])
    assert stopped.value.code == 2 and "choose one" in capsys.readouterr().err
