"""Secrets are masked by schema, wherever in an input they are."""

from typing import Any

import pytest

from headway.domain.masking import MASK, has_secrets, masked, secret_parts, single_values

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
        ({"secret": True}, {"all": "of it"}, MASK),
        ({"secret": "yes", "writeOnly": 1, "format": "date"}, "open", "open"),
        ({"items": SECRET}, ("x", None), [MASK, None]),
        ({"items": SECRET}, b"all in one", MASK),
        ({"items": SECRET}, 7, 7),
        ({"items": SECRET, "type": "string"}, "open", "open"),
        ({"items": SECRET, "enum": ["open"]}, "open", "open"),
        ({"additionalProperties": SECRET}, "all in one text", MASK),
        ({"properties": {"a": {"items": SECRET}}}, "all in one text", MASK),
        ({"oneOf": [{"type": "null"}, {"items": SECRET}]}, ["x"], [MASK]),
        (
            {"properties": {"a": SECRET}, "additionalProperties": {"type": "string"}},
            {"a": "x", "b": "y"},
            {"a": MASK, "b": "y"},
        ),
        (
            {"properties": {"a": SECRET}, "additionalProperties": False},
            {"b": {"c": "y"}},
            {"b": MASK},
        ),
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


def test_a_part_of_a_schema_refers_to_the_definitions_of_the_whole() -> None:
    whole = {"$defs": {"Key": SECRET}}
    assert masked("x", {"$ref": "#/$defs/Key"}, whole) == MASK
    assert masked("x", {"$ref": "#/$defs/Key"}) == "x"


@pytest.mark.parametrize(
    ("schema", "secret"),
    [
        (SECRET, True),
        ({"properties": {"a": {"items": SECRET}}}, True),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"additionalProperties": SECRET}}}, True),
        ({"anyOf": [{"type": "null"}, {"prefixItems": [{}, SECRET]}]}, True),
        ({"$defs": {"A": SECRET}}, False),
        ({"properties": {"a": {"type": "string"}}, "additionalProperties": True}, False),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}, False),
    ],
)
def test_whether_a_schema_has_secrets(schema: dict[str, Any], secret: bool) -> None:
    assert has_secrets(schema) is secret


def test_what_is_masked_is_found_value_by_value() -> None:
    schema = {"properties": {"user": {"type": "string"}, "keys": SECRET, "more": SECRET}}
    value = {"user": "ada", "keys": {"a": ["x", 7], "b": None}, "more": None, "other": ("y",)}
    assert list(secret_parts(value, schema)) == ["x", 7, None, "y"]
    assert list(single_values([{"a": ({1}, frozenset({2}))}, "x", b"y"])) == [1, 2, "x", b"y"]
