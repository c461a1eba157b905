"""docs/reference/settings.md and the code say the same, both ways."""

import re
from pathlib import Path
from typing import NamedTuple

from headway.config import Settings, variable_name
from headway.domain.setting_values import as_text

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
NOT_TAKEN_OVER = (
    "visibility_timeout",
    "batch_size",
    "max_concurrent_dispatch",
    "recover_stuck_jobs_on_startup",
    "prune_orphaned_manifests",
    "HTTP retry",
)


class Row(NamedTuple):
    default: str
    meaning: str
    variable: str


def documented() -> dict[str, Row]:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| `(\w+)` \|$", PAGE.read_text(), re.M)
    return {name: Row(*rest) for name, *rest in rows}


def in_code() -> dict[str, Row]:
    rows = {}
    for name, field in Settings.model_fields.items():
        default = "empty" if field.default == () else f"`{as_text(field.default)}`"
        if field.default_factory:
            default = "CPU count"
        rows[name] = Row(default, field.description or "", variable_name(name))
    return rows


def test_page_and_code_agree_on_every_setting() -> None:
    assert documented() == in_code()


def test_every_setting_is_described_in_one_sentence() -> None:
    for name, row in in_code().items():
        assert re.fullmatch(r"[A-Z][^.]+\.", row.meaning), name


def test_what_is_not_taken_over_is_listed_and_absent() -> None:
    _, _, rest = PAGE.read_text().partition("## Not taken over")
    reasons = re.findall(r"^- ((?:.|\n)+?)(?=\n- |\Z)", rest, re.M)
    for name in NOT_TAKEN_OVER:
        assert any(name in reason.split(":")[0] for reason in reasons), name
        assert name not in Settings.model_fields
