"""Reads, checks and writes recipes of every kind: TOML files, environment variables and flags.

Every key is also a flag (`--algorithm.name rloo`) and an environment variable (`EARNED_ALGORITHM__NAME=rloo`).
Precedence, low to high: defaults of the recipe, the file, the environment, flags.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar, get_args

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from earned.errors import RecipeError, did_you_mean

ENVIRONMENT_PREFIX = "EARNED_"
NOT_RECIPE_KEYS = {"EARNED_HOME", "EARNED_SHARED"}

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """Base of every table: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    refused: ClassVar[Mapping[str, str]] = {}
    """Keys that do not exist on purpose, with the reason."""


R = TypeVar("R", bound=Section)
Table = TypeVar("Table", bound=BaseModel)


def load(
    kind: type[R],
    file: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> R:
    """Return the recipe of `file`, overridden by `EARNED_...` variables, then by dotted flags.

    Raises RecipeError naming the field, the value, what is allowed and the nearest known key.
    """
    table = _read_toml(file) if file is not None else {}
    environment = os.environ if environment is None else environment
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in NOT_RECIPE_KEYS:
            _set(table, name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"), _value(text))
    _merge(table, flags or {})
    return validate(kind, table)


def nested(flags: Mapping[str, str]) -> dict[str, Any]:
    """Return dotted flags as nested tables.

    >>> nested({"options.terms": "[2, 3]", "source": "sums"})
    {'options': {'terms': [2, 3]}, 'source': 'sums'}
    """
    table: dict[str, Any] = {}
    _merge(table, flags)
    return table


def validate(kind: type[Table], table: Mapping[str, object], where: str = "") -> Table:
    """Return `table` as a checked `kind`; `where` is its place in the recipe, such as `problems.options`.

    Raises RecipeError with every unknown key and refused value, each named in full.

    >>> class Checkpointing(Section):
    ...     every: int = 50
    >>> validate(Checkpointing, {"evry": 5}, "checkpoint")
    Traceback (most recent call last):
    earned.errors.RecipeError: checkpoint.evry: unknown key. Did you mean 'every'?
    """
    try:
        return kind.model_validate(dict(table))
    except ValidationError as error:
        raise RecipeError("\n".join(_sentence(kind, fault, where) for fault in error.errors())) from None


def to_toml(recipe: Section) -> str:
    """Return the resolved recipe as TOML that `load` reads back to an equal recipe."""
    return tomli_w.dumps(recipe.model_dump(mode="json", exclude_none=True))


def shipped(name: str) -> Path:
    """Return the path of a recipe that comes with the package, in a checkout or in an installed wheel."""
    package = Path(__file__).parent
    for folder in (package / "_recipes", package.parents[1] / "recipes"):
        if (folder / f"{name}.toml").is_file():
            return folder / f"{name}.toml"
    raise RecipeError(f"there is no shipped recipe {name!r}")


def _read_toml(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise RecipeError(f"{file}: no such recipe file. Recipes are TOML files, for example recipes/tiny_sums.toml")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{file}: not valid TOML: {error}") from None


def _value(text: str) -> Any:
    """Read a flag as a TOML value, and as a plain string when it is none."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _merge(table: dict[str, Any], flags: Mapping[str, str]) -> None:
    for name, text in flags.items():
        _set(table, name.replace("-", "_").split("."), _value(text))


def _set(table: dict[str, Any], path: Sequence[str], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise RecipeError(f"{'.'.join(path)}: {parent} is a value, not a table")
        table = inner
    table[last] = value


def _table_at(kind: type[BaseModel], path: Sequence[str]) -> type[BaseModel] | None:
    """Return the kind of the table at `path`, None where there is no table."""
    for step in path:
        field = kind.model_fields.get(step)
        if field is not None:
            annotations = (field.annotation, *get_args(field.annotation))
        elif kind.model_config.get("extra") == "allow":
            annotations = get_args(kind.__annotations__["__pydantic_extra__"])
        else:
            continue  # an index into a list
        inner = [a for a in annotations if isinstance(a, type) and issubclass(a, BaseModel)]
        if not inner:
            return None
        kind = inner[0]
    return kind


def _names_a_union_member(step: str) -> bool:
    """Return whether pydantic put this step into a place to say which member of a union it tried."""
    return step.startswith("literal[") or step in {table.__name__ for table in Section.__subclasses__()}


def _sentence(kind: type[BaseModel], fault: Any, where: str) -> str:
    path = [str(step) for step in fault["loc"] if not _names_a_union_member(str(step))]
    place = ".".join([where, *path] if where else path)
    if fault["type"] == "extra_forbidden":
        table = _table_at(kind, path[:-1])
        reason = getattr(table, "refused", {}).get(path[-1])
        if reason is not None:
            return f"{place}: {reason}"
        known = list(table.model_fields) if table else []
        hint = did_you_mean(path[-1], known) or f" Known here: {', '.join(known) or 'none'}."
        return f"{place}: unknown key.{hint}"
    if fault["type"] == "missing":
        return f"{place}: required, but not given"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {message}, not {fault['input']!r}" if path else message
