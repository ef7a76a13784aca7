"""Asks the Hugging Face hub whether it has a model, once and with a limit, before anything that tries for a minute."""

from pathlib import Path

from huggingface_hub import model_info, try_to_load_from_cache

from earned.errors import PolicyError

SECONDS = 10.0
"""How long the hub may take to answer."""


def require_on_hub(repository: str, revision: str | None = None) -> None:
    """Raise PolicyError with the reason when the hub does not have the model, or cannot be reached."""
    try:
        model_info(repository, revision=revision, timeout=SECONDS)
    # The client passes on errors of several libraries below it; whatever it is, the model is not to be had.
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise PolicyError(f"the hub gives no answer for it ({reason[0] if reason else type(error).__name__})") from None


def hub_source(name: str) -> str:
    """Return what to load a hub id from: the id itself, or without the hub the folder of an earlier download.

    Raises:
        PolicyError: the hub does not have it or cannot be reached, and there is no earlier download.
    """
    try:
        require_on_hub(name)
    except PolicyError as error:
        cached = try_to_load_from_cache(name, "config.json")
        if isinstance(cached, str):
            return str(Path(cached).parent)
        raise PolicyError(
            f"model {name!r}: {error}. Check the id and the connection, or give a model folder or a name of "
            "`earned models list`"
        ) from None
    return name
