"""The path that is asked for: below a mount, for programs or people, with the slashes of names."""

from __future__ import annotations

from typing import Any

import pytest

from headway.web.paths import is_for_programs, keep_encoded_slashes, route_path


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("", "/groups", "/groups"),
        ("/ops", "/ops/groups", "/groups"),
        ("/ops", "/ops", ""),
        ("/ops", "/opsroom", "/opsroom"),
        ("/ops", "/groups", "/groups"),
    ],
)
def test_a_path_is_that_below_the_mount(root: str, path: str, below: str) -> None:
    assert route_path({"path": path, "root_path": root}) == below


@pytest.mark.parametrize(
    ("path", "program"),
    [
        ("/api", True),
        ("/api/v1/groups", True),
        ("/apiary", False),
        ("/healthz", True),
        ("/readyz", True),
        ("/metrics", True),
        ("/metrics/more", False),
        ("/groups/api/x", False),
        ("/", False),
    ],
)
def test_programs_ask_for_some_paths(path: str, program: bool) -> None:
    assert is_for_programs({"path": path}) is program
    assert is_for_programs({"path": f"/ops{path}", "root_path": "/ops"}) is program


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"/groups/a%2Fb/c", "/groups/a\x1fb/c"),
        (b"/groups/a%2fb", "/groups/a\x1fb"),
        (b"/groups/%C3%A9%2F%25", "/groups/é\x1f%"),
        (b"/groups/a%20b", "as it was"),
        (None, "as it was"),
    ],
)
def test_a_slash_inside_a_name_is_kept_apart(raw: bytes | None, path: str) -> None:
    scope: dict[str, Any] = {"path": "as it was", "raw_path": raw}
    keep_encoded_slashes(scope)
    assert scope["path"] == path
