"""The code of `docs/tutorial.md` runs as it stands, block after block, and prints what the page says."""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```(?:\n+```text\n(?P<printed>.*?)^```)?", re.MULTILINE | re.DOTALL)


def run(page: str) -> dict[str, object]:
    """Run the blocks of a page in one namespace and compare what they print with the block of text below them."""
    names: dict[str, object] = {}
    for block in BLOCK.finditer(page):
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(block["code"], "tutorial", "exec"), names)
        if block["printed"] is not None:
            assert out.getvalue() == block["printed"]
    return names


def test_the_tutorial_runs_and_its_model_learns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) == page.count("```python") and page.count("```text") >= 2
    names = run(page)
    result = names["result"]
    assert result.after.low > result.before.high
    assert len(names["sampled"].attempts) == 8 and len(names["runs"]) == 3


@pytest.mark.parametrize("page", ["```python\nprint(1)\n```\n\n```text\n2\n```\n", "```python\n1 / 0\n```\n"])
def test_a_page_that_is_wrong_is_found(page):
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run(page)
