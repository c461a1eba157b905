"""docs/guides/health.md lists every check with its own sentence and repair, in the same order."""

import re
from pathlib import Path

from headway.doctor.checks import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "health.md"
ROW = re.compile(
    r"^\| `([a-z-]+)` \| (error|warning|hint) \| (.+?) \| (?:(`--fix`): )?(.+?) \|$", re.M
)


def test_page_and_code_agree_on_every_check() -> None:
    listed = [
        (name, severity, sentence, bool(fixed), fix)
        for name, severity, sentence, fixed, fix in ROW.findall(PAGE.read_text("utf-8"))
    ]
    assert listed == [
        (one.name, one.severity.value, one.sentence, one.repair is not None, one.fix)
        for one in CHECKS
    ]


def test_the_page_names_what_is_left_out_without_an_application() -> None:
    [left_out] = re.findall(r"checks are left\nout \((.+?)\)", PAGE.read_text("utf-8"))
    named = re.findall(r"`([a-z-]+)`", left_out)
    assert named == [one.name for one in CHECKS if one.by_settings]


def test_every_sentence_is_one_and_every_name_is_used_once() -> None:
    for one in CHECKS:
        assert re.fullmatch(r"[A-Zh].+\.", one.sentence), one.name
        assert not one.fix.endswith("."), one.name
    names = [one.name for one in CHECKS]
    assert len(set(names)) == len(names)
