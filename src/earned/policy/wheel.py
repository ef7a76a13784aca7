"""Fetches one Python package without installing it.

By pip in a process of its own, since only pip knows the package index, proxy and certificates this machine is set to;
it has no interface inside Python.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from earned.errors import PolicyError


def download_wheel(package: str, version: str, folder: Path) -> Path:
    """Return the path of the wheel, downloaded into `folder` alone, without what it depends on.

    Raises:
        PolicyError: pip is not there, or does not find the package.
    """
    options = ["--quiet", "--no-input", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), f"{package}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode == 0 and wheel is not None:
        return wheel
    reasons = [line for line in done.stderr.splitlines() if line.strip()]
    raise PolicyError(f"pip: {reasons[-1] if reasons else 'no wheel came'}")


def installed_file(package: str, file: str) -> Path | None:
    """Return a file of an installed package without importing it, None when it is not there.

    >>> installed_file("no-such-package", "weights.gguf")
    """
    try:
        path = Path(str(metadata.distribution(package).locate_file(file)))
    except metadata.PackageNotFoundError:
        return None
    return path if path.is_file() else None
