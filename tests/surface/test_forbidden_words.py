"""Nothing here names a package registry's host: packages are asked for by name alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Each letter in brackets keeps this file from matching itself.
REGISTRY_HOSTS = re.compile(rb"p[y]pi\.org|pythonh[o]sted|n[p]mjs|d[e]bian\.org", re.IGNORECASE)


# "headway" on the public index is another project.
ANOTHER_PROJECT = re.compile(
    rb"(?:pip|uv|pipx|poetry) (?:install|add)[^\n]*?['\" ]headway(?![-_/\w.:])|['\" ]headway\["
)


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


def test_every_text_that_tells_to_install_headway_names_its_distribution() -> None:
    files = [path for path in project_files() if (ROOT / path).is_file()]
    files.remove(Path("tests/surface/test_forbidden_words.py"))
    named = {
        str(path): match.group().decode()
        for path in files
        if (match := ANOTHER_PROJECT.search((ROOT / path).read_bytes()))
    }
    assert named == {}
    assert ANOTHER_PROJECT.search(b"pip install 'headway[web]'")
    assert ANOTHER_PROJECT.search(b"uv add headway\n")
    assert not ANOTHER_PROJECT.search(b"pip install 'headway-scheduler[web]'")
