import math
from dataclasses import dataclass

import pytest

from earned.errors import RecipeError
from earned.records.parquet import require_parquet, write_parquet

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `data` is not installed")


@dataclass(frozen=True)
class Row:
    name: str
    note: str | None
    count: int
    share: float | None


def test_what_is_written_reads_back_with_its_types(tmp_path):
    path = tmp_path / "table.parquet"
    require_parquet(path)
    write_parquet(path, Row, [Row("a", None, 3, 0.5), Row("\ud800", None, 4, None), Row("c", None, 5, math.nan)])
    table = parquet.read_table(path)
    assert {field.name: str(field.type) for field in table.schema} == {
        "name": "string",
        "note": "string",
        "count": "int64",
        "share": "double",
    }, "a column of nothing but None has its type all the same"
    assert table.column("share").to_pylist() == [0.5, None, None]
    assert table.column("name").to_pylist() == ["a", "\\ud800", "c"]


def test_no_rows_are_a_table_too(tmp_path):
    write_parquet(tmp_path / "table.parquet", Row, [])
    assert parquet.read_table(tmp_path / "table.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table.csv", r"table\.csv: tables are written as Parquet, so the name has to end in \.parquet"),
        ("no/table.parquet", r"there is no folder .*no to write the table into"),
        ("old.parquet", r"old\.parquet: exists already; choose another name"),
        ("old.parquet/table.parquet", r"there is no folder .*old\.parquet to write"),
    ],
)
def test_a_table_that_could_not_be_written_is_refused_before(tmp_path, name, message):
    (tmp_path / "old.parquet").touch()
    with pytest.raises(RecipeError, match=message):
        require_parquet(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.parquet"]
