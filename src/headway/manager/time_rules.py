"""Which rules of time this process decides by: other rules may mean other due times."""

import zoneinfo
from importlib import metadata
from pathlib import Path

LIBRARIES = ("cronsim", "holidays", "tzdata")


def time_rules() -> str:
    """The versions of everything that says when a manifest is due, as one line.

    >>> time_rules().startswith("cronsim ")
    True
    """
    versions = [f"{name} {_version(name)}" for name in LIBRARIES]
    return ", ".join([*versions, f"system {_system_zones()}"])


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "-"


def _system_zones() -> str:
    """The release of the system's own time zones, which its first line names."""
    for folder in zoneinfo.TZPATH:
        try:
            with Path(folder, "tzdata.zi").open(encoding="utf-8") as rules:
                return rules.readline().removeprefix("# version ").strip()
        except (OSError, UnicodeDecodeError):
            continue
    return "-"
