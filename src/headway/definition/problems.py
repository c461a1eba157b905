"""What is wrong with an input, in one line: the field, the value, the rule and an example."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from headway.domain.masking import MASK, has_secrets, masked
from headway.domain.text import clause, printable, shown, storage_rule

Path = tuple[str | int, ...]
Schema = Mapping[str, Any]

STORAGE = "storage"
"""The kind of problem that another value of the same type need not solve: no example helps."""

_RULE_LIMIT = 300
_MISSING = frozenset({"missing", "missing_argument"})
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_EXAMPLES = {
    ("integer", None): "1",
    ("number", None): "1.5",
    ("string", None): '"text"',
    ("string", "date"): '"2030-01-31"',
    ("string", "date-time"): '"2030-01-31T12:00:00Z"',
    ("string", "duration"): '"PT1H"',
    ("boolean", None): "true",
    ("array", None): "[]",
    ("object", None): "{}",
}
_UNCONSTRAINED = frozenset(
    {"additionalProperties", "default", "description", "format", "items", "title", "type"}
)


@dataclass(eq=False)
class Problem(Exception):
    """One thing that is wrong with an input: where, what was found there, and the rule it breaks.

    >>> Problem(("tables", 2), 7, "must be text").sentence({})
    "field 'tables[2]' = 7: must be text"
    """

    path: Path
    value: object
    rule: str
    kind: str = "rule"
    others: int = 0

    def __post_init__(self) -> None:
        if self.kind == "string_unicode" and isinstance(self.value, str):
            self.rule = storage_rule(self.value) or self.rule

    @classmethod
    def first_of(cls, error: ValidationError) -> "Problem":
        """The first of the problems pydantic found, and how many others there are.

        An unknown field goes before all others: misspelling one also makes it missing.

        >>> from pydantic import TypeAdapter
        >>> try:
        ...     TypeAdapter(list[int]).validate_python([1, "x", "y"])
        ... except ValidationError as error:
        ...     Problem.first_of(error).path
        (1,)
        """
        return cls.all_of(error)[0]

    @classmethod
    def all_of(cls, error: ValidationError) -> "list[Problem]":
        """Every problem pydantic found, the one to be told first at the front."""
        found = error.errors(include_url=False, include_context=False)
        first = next((each for each in found if each["type"] in _UNKNOWN), found[0])
        in_order = [first, *(each for each in found if each is not first)]
        return [
            cls(each["loc"], each["input"], each["msg"], each["type"], len(found) - 1)
            for each in in_order
        ]

    @property
    def place(self) -> tuple[Path, str]:
        """Where it is, and the rule alone.

        >>> Problem(("rows",), "x", "must be a whole number").place
        (('rows',), 'must be a whole number')
        """
        return self.path, one_line(self.rule)

    def sentence(self, schema: Schema) -> str:
        """The problem in one line, with an example taken from the input's JSON schema.

        >>> schema = {"properties": {"partition": {"type": "integer"}}}
        >>> Problem(("partition",), "abc", "must be a whole number").sentence(schema)
        "field 'partition' = 'abc': must be a whole number; for example 1"
        """
        where = f"field {shown(_dotted(self.path))} " if self.path else ""
        value = shown(self._as_far_as_nested(schema))
        others = f" (and {self.others} more)" if self.others else ""
        if self.kind in _MISSING:
            return f"{where}is missing{_example(schema, self.path)}{others}"
        if self.kind in _UNKNOWN:
            return f"{where}= {value}: no such field{_known(schema, self.path)}{others}"
        example = "" if self.kind == STORAGE else _example(schema, self.path)
        return f"{where}= {value}: {clause(one_line(self.rule))}{example}{others}"

    def _as_far_as_nested(self, schema: Schema) -> Any:
        try:
            return self._masked(schema)
        except RecursionError:  # of what is nested hundreds of levels deep, only the type is told
            return MASK if has_secrets(schema) else self.value

    def _masked(self, schema: Schema) -> Any:
        """Return the value that was found, masked where it may be a secret.

        A place that the schema does not know may be a secret's, misspelt or of an alternative.
        """
        node = _node_at(schema, self.path)
        if not node and has_secrets(schema):
            return MASK
        return masked(self.value, node, schema)


def one_line(text: str) -> str:
    r"""*text* as one short printable line.

    >>> one_line("first\nsecond")
    'first second'
    """
    return printable(" ".join(text.split()), _RULE_LIMIT)


def _dotted(path: Path) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _example(schema: Schema, path: Path) -> str:
    node = _node_at(schema, path)
    if has_secrets(node):
        return ""  # a default is as secret as any other value
    if "enum" in node or "examples" in node:
        example = json.dumps((node.get("examples") or node["enum"])[0])
    elif node.keys() <= _UNCONSTRAINED:
        example = _EXAMPLES.get((node.get("type", ""), node.get("format")), "")
    else:
        example = json.dumps(node["default"]) if "default" in node else ""
    return f"; for example {example}" if example else ""


def _known(schema: Schema, path: Path) -> str:
    known = ", ".join(_node_at(schema, path[:-1]).get("properties", ()))
    return f"; the fields are {printable(known, _RULE_LIMIT)}" if known else ""


def _node_at(schema: Schema, path: Path) -> Schema:
    """The part of a JSON schema that describes the field at *path*; empty where none does."""
    node = _resolved(schema, schema)
    for part in path:
        node = _resolved(schema, _child(node, part))
    return node


def _child(node: Schema, part: str | int) -> Any:
    if isinstance(part, int):
        positions = node.get("prefixItems", ())
        return positions[part] if part < len(positions) else node.get("items")
    return node.get("properties", {}).get(part) or node.get("additionalProperties")


def _resolved(schema: Schema, node: Any) -> Schema:
    if not isinstance(node, Mapping):
        return {}
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        return _resolved(schema, schema.get("$defs", {}).get(name))
    if "anyOf" in node:
        inner = _resolved(schema, node["anyOf"][0])
        return {**inner, "examples": node["examples"]} if "examples" in node else inner
    return node
