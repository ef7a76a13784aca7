"""Data sets of the Hugging Face hub: `OWNER/NAME` or `OWNER/NAME:CONFIG`."""

import os
import re
from typing import Any

from earned.errors import RecipeError, did_you_mean
from earned.problems.files import NEEDS_DATA_EXTRA, Table, table_of_objects

HUB_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?")

REACH_SECONDS = 5.0
"""The library itself tries for more than 20 seconds before it gives up on a hub that is not there."""

ALTERNATIVES = (
    "Instead: a file (.jsonl, .json, .csv, .parquet); a copy in the local cache with HF_HUB_OFFLINE=1; "
    "a mirror with HF_ENDPOINT=URL; or the built-in 'sums'"
)


def read_hub(name: str, split: str) -> Table:
    """Return the rows of one of the hub's own splits of a data set.

    Raises:
        RecipeError: `datasets` is not installed, the hub cannot be reached (said within `REACH_SECONDS`), or it does
            not hold this data set, configuration or split.
    """
    match = HUB_NAME.fullmatch(name)
    assert match, f"{name} is no hub name"
    try:
        import datasets  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise RecipeError(
            f"{name}: no such file, and reading it from the hub needs `datasets`, which {NEEDS_DATA_EXTRA}"
        ) from None
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("0", "", "false", "no", "off"):
        _require_reachable(name, match["repository"])
    try:
        found = datasets.load_dataset(match["repository"], match["config"])
    except (OSError, ValueError, RuntimeError) as error:
        raise RecipeError(f"{name}: the data set cannot be loaded: {error}\n{ALTERNATIVES}") from None
    return hub_table(name, found, split)


def hub_table(name: str, splits: Any, split: str) -> Table:
    """Return the rows of one split of a `datasets.DatasetDict`."""
    if split not in splits:
        raise RecipeError(
            f"problems.options.split: {name} has no split {split!r}, only {', '.join(map(repr, splits))}."
            f"{did_you_mean(split, [*splits])}"
        )
    rows = splits[split].to_list()
    if not rows:
        raise RecipeError(f"{name}: the split {split!r} holds no rows")
    return table_of_objects(name, rows)


def _require_reachable(name: str, repository: str) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    try:
        HfApi().dataset_info(repository, timeout=REACH_SECONDS)
    except GatedRepoError:
        raise RecipeError(f"{name}: access to this data set has to be asked for on the hub first") from None
    except RepositoryNotFoundError:
        raise RecipeError(
            f"{name}: the hub has no such data set, or only for those who are logged in; and there is no such file"
        ) from None
    except HfHubHTTPError as error:
        raise RecipeError(f"{name}: the hub refused: {error}\n{ALTERNATIVES}") from None
    except Exception as error:  # The transport below the hub's library differs between its versions.
        raise RecipeError(f"{name}: the hub cannot be reached: {error}\n{ALTERNATIVES}") from None
