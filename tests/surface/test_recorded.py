"""What others rely on is as recorded: a change of it is seen, and made on purpose."""

from __future__ import annotations

import pytest

from tests.surface.recording import FOLDER, RECORDED


@pytest.mark.parametrize("name", RECORDED)
def test_what_others_rely_on_is_as_recorded(name: str) -> None:
    assert RECORDED[name]() == (FOLDER / name).read_text("utf-8"), (
        "if this change is meant: python -m tests.surface.recording"
    )


def test_every_record_is_compared() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(RECORDED)
