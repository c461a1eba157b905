"""Queued entries that can never run, told by manifest and reason: how many, and the first."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationInfo, field_validator

from headway.definition.registry import Registry
from headway.definition.stranded import stranded
from headway.domain.isolation import Isolation
from headway.domain.plan import Stranded
from headway.domain.work_queue import QueuedInput


class Table(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def check(cls, name: str, info: ValidationInfo) -> str:
        seen.append(name)
        return name


seen: list[str] = []


def load(table: Table) -> None: ...
def train(table: Table) -> None: ...


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.register(None, load, dict)
    registry.register(None, train, dict, Isolation())
    seen.clear()
    return registry


def test_entries_are_counted_by_manifest_and_reason_with_the_first_of_each(
    registry: Registry,
) -> None:
    gone = "workflow 'extract' is not registered"
    missing = "load: input field 'name' is missing; for example \"text\""
    told = stranded(
        registry,
        [
            QueuedInput(3, "load-users", "load", "{}"),
            QueuedInput(4, "load-users", "load", '{"name":"users"}'),
            QueuedInput(5, "load-users", "load", "{}"),
            QueuedInput(6, "load-orders", "load", "{}"),
            QueuedInput(7, "load-users", "extract", "{}"),
        ],
    )
    assert told == (
        Stranded("load-orders", "load", missing, 1, 6),
        Stranded("load-users", "extract", gone, 1, 7),
        Stranded("load-users", "load", missing, 2, 3),
    )


def test_the_same_input_of_many_entries_is_read_once(registry: Registry) -> None:
    alike = [QueuedInput(number, "load-users", "load", '{"name":"users"}') for number in range(9)]
    assert stranded(registry, alike) == ()
    assert seen == ["users"]


def test_the_input_of_an_isolated_workflow_is_not_read(registry: Registry) -> None:
    assert stranded(registry, [QueuedInput(3, "train-users", "train", "{}")]) == ()
    assert seen == []
