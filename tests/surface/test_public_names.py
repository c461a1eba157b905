"""What `import headway` offers, exactly, and what it does not drag in."""

import importlib
import subprocess
import sys

import pytest

OFFERED = {
    "headway": [
        "ContextSnapshot",
        "DoNotRetry",
        "Group",
        "Headway",
        "HeadwayError",
        "Item",
        "JobCancelled",
        "Page",
        "RetryAfter",
        "RetryPolicy",
        "Run",
        "TaskServer",
        "__version__",
        "cron",
        "every",
        "exclude",
        "fence",
        "once",
    ],
    "headway.celery": ["CeleryServer", "install"],
    "headway.executor": ["Executor"],
    "headway.testing": ["NeverIdle", "Sandbox", "VirtualClock"],
}


@pytest.mark.parametrize("module", OFFERED)
def test_the_public_names_are_these_and_sorted(module: str) -> None:
    imported = importlib.import_module(module)
    assert imported.__all__ == OFFERED[module] == sorted(OFFERED[module])
    assert all(hasattr(imported, name) for name in OFFERED[module])


@pytest.mark.parametrize("module", OFFERED)
def test_importing_drags_in_no_terminal_web_or_test_packages(module: str) -> None:
    unwanted = {"typer", "rich", "fastapi", "celery", "pytest", "psycopg"} - {
        module.removeprefix("headway.")
    }
    script = f"import sys, {module}; print(*sorted({unwanted} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []
