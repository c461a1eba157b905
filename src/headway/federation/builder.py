"""MANIFEST_BUILDER_DIAZOTROPH: makes the page of a snapshot, and has nothing but the snapshot.

It asks nobody: an import rule keeps the query client out of reach.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from headway.domain.azolla import ids
from headway.domain.azolla.artifacts import ContextSnapshot, OutputBundle, Workorder
from headway.domain.azolla.context import parse_prompt
from headway.domain.azolla.gate import BuildFailure
from headway.domain.azolla.page import Page, build_page, not_answered, page_of

Builder = Callable[[ContextSnapshot], Any]
"""Takes the snapshot and returns a :class:`Page` or a text; may be async."""


def build(snapshot: ContextSnapshot) -> Page:
    """headway's own builder: ranks what waits by urgency, importance, failure and age."""
    return build_page(parse_prompt(snapshot.full_prompt_text))


def bundle_of(
    order: Workorder, snapshot: ContextSnapshot, returned: object, at: datetime
) -> OutputBundle:
    """What the builder *returned*, as the artifact the gate looks at."""
    context, page = parse_prompt(snapshot.full_prompt_text), page_of(returned)
    return OutputBundle(
        output_id=ids.output_of(order.work_order_id),
        objective_id=order.objective_id,
        title=page.title,
        metadata={
            "queried_azolla_ids": list(context.answered()),
            "prioritized_orientation": list(page.orientation),
        },
        content=page.content,
        notes="; ".join(not_answered(context)),
        created_at=at,
    )


def failed_bundle(order: Workorder, failure: BuildFailure, why: str, at: datetime) -> OutputBundle:
    """What is kept of a workorder that led to no page."""
    return OutputBundle(
        output_id=ids.output_of(order.work_order_id),
        objective_id=order.objective_id,
        title="No manifest",
        metadata={"queried_azolla_ids": [], "failure": failure.value},
        content="",
        notes=why,
        created_at=at,
    )
