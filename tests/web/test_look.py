"""What every page shares: nothing inline or from elsewhere, icons that exist, readable colours."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

import headway.web

HOME = Path(headway.web.__file__).parent
TEMPLATES = sorted((HOME / "templates").glob("*.html"))
SHEETS = {path.name: path.read_text() for path in sorted((HOME / "static").glob("*.css"))}
TOKENS = SHEETS["tokens.css"]
NORMAL_TEXT, LARGE_OR_SIGN = 4.5, 3.0


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_anything_the_content_policy_forbids(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"\sstyle=|\son[a-z]+=[\"']|<style|javascript:", text)
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert "|safe" not in text.replace(" ", "")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_asks_another_host(template: Path) -> None:
    assert not re.search(
        r"(src|href|action|hx-get|hx-post)=[\"'](https?:)?//", template.read_text()
    )


def test_no_style_sheet_asks_another_host() -> None:
    for text in SHEETS.values():
        assert "@import" not in text
        assert "url(" not in text


def test_every_icon_named_in_a_template_is_drawn() -> None:
    drawn = set(re.findall(r'<symbol id="([\w-]+)"', (HOME / "static/icons.svg").read_text()))
    asked = re.compile(r"icon\(\"([\w-]+)\"|ui\.empty\(\"([\w-]+)\"|icon_name=\"([\w-]+)\"")
    named = {
        name for path in TEMPLATES for found in asked.findall(path.read_text()) for name in found
    }
    states = re.findall(
        r"STATE_ICONS = \{(.*?)\}", (HOME / "templates/macros.html").read_text(), re.S
    )
    named |= set(re.findall(r": \"([\w-]+)\"", states[0]))
    assert named - {""} <= drawn


def test_every_colour_that_is_used_is_defined() -> None:
    defined = {name for text in SHEETS.values() for name in re.findall(r"(--[\w-]+):", text)}
    used = {name for text in SHEETS.values() for name in re.findall(r"var\((--[\w-]+)", text)}
    assert used <= defined


@pytest.mark.parametrize(
    ("theme", "state"), list(product((0, 1), ("ok", "fail", "run", "wait", "off", "back")))
)
def test_a_state_can_be_read_in_both_themes(theme: int, state: str) -> None:
    assert contrast(theme, state, f"{state}-soft") >= NORMAL_TEXT
    for ground in ("surface", "bg"):
        assert contrast(theme, f"{state}-solid", ground) >= LARGE_OR_SIGN


@pytest.mark.parametrize(
    ("theme", "ink"), list(product((0, 1), ("ink", "ink-2", "ink-3", "accent", "danger")))
)
def test_text_can_be_read_in_both_themes(theme: int, ink: str) -> None:
    for ground in ("bg", "surface", "inset", "hover"):
        assert contrast(theme, ink, ground) >= NORMAL_TEXT


@pytest.mark.parametrize("theme", (0, 1))
def test_buttons_and_fields_can_be_made_out(theme: int) -> None:
    for ground in ("accent-solid", "danger-solid"):
        assert ratio("#ffffff", colour(theme, ground)) >= NORMAL_TEXT
    assert contrast(theme, "accent", "accent-soft") >= NORMAL_TEXT
    assert contrast(theme, "control", "surface") >= LARGE_OR_SIGN


def contrast(theme: int, ink: str, ground: str) -> float:
    return ratio(colour(theme, ink), colour(theme, ground))


def colour(theme: int, name: str) -> str:
    found = re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", TOKENS)
    assert found, name
    return found.groups()[theme]


def ratio(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
