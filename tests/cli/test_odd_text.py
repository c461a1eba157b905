"""Text with NUL or lone surrogates at the command line: one line, or escaped."""

from __future__ import annotations

import json

from headway.domain.work_queue import NewEntry, Source
from headway.store import work_queue
from tests.cli.conftest import Shop
from tests.federation.sites import opened
from tests.surface.test_cli import assert_brief

ODD = "load-\udcff"  # as Python reads the byte FF in an argument

WITH_ARGUMENT: list[tuple[str, ...]] = [
    ("manifests", "list", ODD),
    ("manifests", "show", ODD),
    ("executions", "list", "--group", ODD),
    ("queue", "list", "--group", ODD),
    ("dead-letters", "list", "--workflow", ODD),
    ("trigger", ODD),
    ("manifests", "disable", ODD),
    ("cancel", "load-1", "--reason", ODD),
    ("why", ODD),
]


def test_an_argument_that_is_not_utf_8_is_refused_in_one_line(shop: Shop) -> None:
    for arguments in WITH_ARGUMENT:
        code, out, err = shop(*arguments)
        assert code in (1, 2), (arguments, err)
        assert out == "" and "unexpected" not in err, (arguments, err)
        assert "\\udcff" in err, (arguments, err)
        assert_brief(err)


def test_stored_rows_with_odd_text_are_shown_escaped(shop: Shop) -> None:
    odd = {"name": "\ud800\x00"}
    with opened(shop.database_url) as store, store.writing() as tx:
        [entry] = work_queue.enqueue(tx, [NewEntry("load", Source.AD_HOC, json.dumps(odd))])
        [number] = work_queue.dispatch(tx, [entry]).values()
    assert "\x00" not in shop.said("executions", "show", str(number), "--app", "shop:hw")
    found = shop.read("executions", "show", str(number), "--app", "shop:hw")
    assert found["execution"]["input"]["name"] == odd["name"]
    assert shop.said("executions", "list")
    assert shop.read("executions", "list")
