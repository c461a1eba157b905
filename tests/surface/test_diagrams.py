"""The drawn flow of the Manifest Scheduler Worker has the steps of the code, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from headway.federation.worker import MANIFEST_SCHEDULER_WORKER

DIAGRAMS = Path(__file__).parents[2] / "docs" / "diagrams"
STEPS = [step.name for step in MANIFEST_SCHEDULER_WORKER.steps]
SVG = "{http://www.w3.org/2000/svg}"


def source() -> str:
    return (DIAGRAMS / "manifest_scheduler_worker.puml").read_text("utf-8")


def drawing() -> ElementTree.Element:
    return ElementTree.parse(DIAGRAMS / "manifest_scheduler_worker.svg").getroot()


def texts(element: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text")]


def test_the_source_has_the_steps_numbered_in_their_order() -> None:
    drawn = re.findall(r'^partition "(\d)\. (\w+)" \{$', source(), re.M)
    assert drawn == [(str(number), name) for number, name in enumerate(STEPS, 1)]


def test_the_source_is_whole() -> None:
    lines = [line.strip() for line in source().splitlines()]
    assert lines[0].startswith("@startuml") and lines[-1] == "@enduml"
    opened = sum(line.startswith("if (") for line in lines)
    assert opened == lines.count("endif") > 0
    assert sum(line.endswith("{") for line in lines) == lines.count("}")


def test_the_drawing_has_the_same_steps() -> None:
    groups = [group for group in drawing().iter(f"{SVG}g") if group.get("id")]
    assert [group.get("id") for group in groups] == STEPS
    for number, (name, group) in enumerate(zip(STEPS, groups, strict=True), 1):
        assert texts(group)[:2] == [str(number), name]


def test_both_show_where_a_tick_leaves_the_way() -> None:
    shown = texts(drawing())
    for word in ("skip", "park", "deferred"):
        assert word in shown
        assert f"**{word}**" in source()


def test_the_drawing_is_readable_on_any_background() -> None:
    root = drawing()
    first = next(root.iter(f"{SVG}rect"))
    assert first.get("class") == "card", "it brings its own background"
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert float(first.attrib["width"]) >= width - 2
    assert float(first.attrib["height"]) >= height - 2
