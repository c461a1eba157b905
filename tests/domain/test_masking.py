"""Secrets are masked by schema, wherever in an input they are."""

from typing import Any

import pytest

from headway.domain.masking import MASK, masked

SECRET = {"type": "string", "format": "password", "writeOnly": True}


@pytest.mark.parametrize(
    ("schema", "value", "seen"),
    [
        (SECRET, "geheim", MASK),
        ({"format": "password"}, ["even", "this"], MASK),
        ({"writeOnly": True}, 7, MASK),
        (SECRET, None, None),
        ({"type": "string"}, "open", "open"),
        ({}, {"password": "who knows"}, {"password": "who knows"}),
        (
            {"properties": {"a": SECRET, "b": {"type": "string"}}},
            {"a": "x", "b": "y", "c": "z"},
            {"a": MASK, "b": "y", "c": MASK},
        ),
        ({"properties": {"a": {"type": "string"}}}, {"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
        ({"additionalProperties": SECRET}, {"a": "x"}, {"a": MASK}),
        ({"items": SECRET}, ["x", "y"], [MASK, MASK]),
        ({"prefixItems": [{}, SECRET], "items": {}}, ["x", "y", "z"], ["x", MASK, "z"]),
        ({"prefixItems": [{}, SECRET]}, "all in one text", MASK),
        ({"anyOf": [{"type": "null"}, SECRET]}, "x", MASK),
        ({"allOf": [{"properties": {"a": SECRET}}]}, {"a": "x"}, {"a": MASK}),
        (
            {
                "$ref": "#/$defs/Tree",
                "$defs": {
                    "Tree": {
                        "properties": {"key": SECRET, "next": {"$ref": "#/$defs/Tree"}},
                    }
                },
            },
            {"key": "x", "next": {"key": "y", "next": {"key": "z"}}},
            {"key": MASK, "next": {"key": MASK, "next": {"key": MASK}}},
        ),
    ],
)
def test_a_secret_is_masked_wherever_it_is(
    schema: dict[str, Any], value: object, seen: object
) -> None:
    assert masked(value, schema) == seen


def test_a_schema_that_only_leads_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}
    assert masked({"a": 1}, schema) == {"a": 1}
