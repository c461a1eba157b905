"""Stored inputs as people may see them: what their workflow declares secret is masked."""

import json
from typing import Any

from headway.definition.registry import Registry
from headway.domain.masking import MASK
from headway.errors import UnknownWorkflow


def shown_input(registry: Registry, workflow: str, text: str) -> Any:
    """The value behind a stored input, its secrets masked by the input's schema.

    Of a workflow that this process does not know nobody can say what is secret: all of it is
    masked, unless there is nothing to see.

    >>> registry = Registry()
    >>> def extract(table: str) -> None: ...
    >>> registered = registry.register(None, (extract,), context_type=dict)
    >>> shown_input(registry, "extract", '"users"'), shown_input(registry, "load", '"users"')
    ('users', '********')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return MASK
    if value is None:
        return None
    try:
        return registry.find(workflow).input_type.masked(value)
    except UnknownWorkflow:
        return MASK
