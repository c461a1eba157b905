"""Nothing here names a package registry's host: packages are asked for by name alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Each letter in brackets keeps this file from matching itself.
REGISTRY_HOSTS = re.compile(rb"p[y]pi\.org|pythonh[o]sted|n[p]mjs|d[e]bian\.org", re.IGNORECASE)


def project_files() -> list[Path]:
    """What git has or would take; without git, what is in no hidden folder."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        found = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        return [path for path in found if not any(part.startswith(".") for part in path.parts[:-1])]
    return [Path(name) for name in listed.stdout.split("\0") if name]


def test_no_file_names_a_package_registry() -> None:
    files = [path for path in project_files() if (ROOT / path).is_file()]
    assert Path("pyproject.toml") in files
    named = {
        str(path): match.group().decode()
        for path in files
        if (match := REGISTRY_HOSTS.search((ROOT / path).read_bytes()))
    }
    assert named == {}
