"""`earned models list` and `earned models pull NAME`."""

from dataclasses import asdict

from cyclopts import App
from rich.console import Console
from rich.table import Table

from earned.cli.flags import Json
from earned.cli.json_line import write_json
from earned.policy.catalog import BUILT_IN_SOURCE, CatalogRow, catalog_rows

app = App(name="models", help="List the known models, and fetch one.")


@app.command(name="list")
def list_models(*, json: Json = False) -> None:
    """List the models known by name: their size, licence, hash, and where they are.

    Args:
        json: Print one line of JSON for each model.
    """
    rows = catalog_rows()
    if json:
        for row in rows:
            write_json({**asdict(row), "folder": row.folder and str(row.folder)})
        return
    table = Table("model", "size", "licence", "SHA-256", "where")
    for row in rows:
        size = "-" if row.bytes is None else f"{row.bytes / 1e6:.1f} MB"
        table.add_row(row.name, size, row.licence, (row.sha256 or "-")[:12], _where(row))
    console = Console(highlight=False)
    console.print(table)
    for row in rows:
        if row.folder is not None:
            console.print(f"{row.name}: {row.source}, in {row.folder}", markup=False, soft_wrap=True)


@app.command
def pull(name: str) -> None:
    """Fetch a model into the folder of EARNED_HOME, by default in the user's cache folder.

    Args:
        name: A name of `earned models list`.
    """
    console = Console(highlight=False)

    from earned.policy.pull import pull_model

    folder = pull_model(name, lambda text: console.print(text, markup=False, soft_wrap=True))
    console.print(f"model  {name}\nfolder {folder}", markup=False, soft_wrap=True)


def _where(row: CatalogRow) -> str:
    if row.source == BUILT_IN_SOURCE:
        return BUILT_IN_SOURCE
    return f"earned models pull {row.name}" if row.folder is None else "pulled"
