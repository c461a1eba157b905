"""Which parts of a value are secret, by its JSON schema: passwords and other secrets of an input.

This is the one place for that rule. ``domain/redaction.py`` finds the same secrets in texts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MASK = "********"

Schema = Mapping[str, Any]

_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


def masked(value: Any, schema: Schema, root: Schema | None = None) -> Any:
    """*value* with every part that *schema* calls a secret replaced by a mask.

    A secret is what has the format ``password`` or may only be written, as pydantic says of a
    ``SecretStr``, or says ``secret: true`` of itself. Where a schema allows several things, one of
    them being secret is enough. Beside secret fields, a field that the schema does not know is
    secret as well (its name may be misspelt), and so is text in the place of the whole object.
    For a part of a schema *root* is the whole, which has the definitions it refers to.

    >>> schema = {"properties": {"user": {"type": "string"}, "key": {"format": "password"}}}
    >>> masked({"user": "ada", "key": "geheim"}, schema)
    {'user': 'ada', 'key': '********'}
    """
    return _walked(value, schema, root, lambda secret: MASK)


def secret_parts(value: Any, schema: Schema) -> Iterator[Any]:
    """The texts, numbers and other single values in *value* that :func:`masked` hides.

    >>> schema = {"properties": {"user": {"type": "string"}, "keys": {"secret": True}}}
    >>> list(secret_parts({"user": "ada", "keys": ["geheim", 7]}, schema))
    ['geheim', 7]
    """
    found: list[Any] = []
    _walked(value, schema, None, found.append)
    for part in found:
        yield from single_values(part)


def has_secrets(schema: Schema) -> bool:
    """Whether *schema* calls any part of a value a secret.

    >>> has_secrets({"items": {"format": "password"}}), has_secrets({"type": "string"})
    (True, False)
    """
    return _hides([schema], schema)


def single_values(value: Any) -> Iterator[Any]:
    """The values in *value* that have no parts; keys are none of them.

    >>> list(single_values({"a": [1, "x"], "b": None}))
    [1, 'x', None]
    """
    if isinstance(value, Mapping):
        for part in value.values():
            yield from single_values(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from single_values(part)
    else:
        yield value


def _walked(value: Any, schema: Schema, root: Schema | None, hide: Callable[[Any], Any]) -> Any:
    whole = schema if root is None else root
    return _masked(value, _meant(whole, [schema]), whole, hide)


def _says_secret(node: Schema) -> bool:
    marked = node.get("writeOnly") is True or node.get("secret") is True
    return marked or node.get("format") == "password"


def _masked(value: Any, nodes: list[Schema], root: Schema, hide: Callable[[Any], Any]) -> Any:
    if value is None:
        return None
    if any(map(_says_secret, nodes)):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            key: _masked(part, _meant(root, _named(nodes, key, root)), root, hide)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _masked(part, _meant(root, _placed(nodes, place)), root, hide)
            for place, part in enumerate(value)
        ]
    if isinstance(value, str | bytes) and not _admits_text(nodes) and _hides(nodes, root):
        return hide(value)
    return value


def _admits_text(nodes: list[Schema]) -> bool:
    return any(node.get("type") == "string" or "enum" in node for node in nodes)


def _hides(nodes: Iterable[Any], root: Schema) -> bool:
    """Whether anything at or below *nodes* is secret."""
    seen: list[Schema] = []
    waiting = _meant(root, nodes)
    while waiting:
        node = waiting.pop()
        if any(node is known for known in seen):
            continue
        if _says_secret(node):
            return True
        seen.append(node)
        waiting += _meant(root, _children(node))
    return False


def _children(node: Schema) -> list[Any]:
    below = [node.get("items"), node.get("additionalProperties"), *node.get("prefixItems", ())]
    return [*below, *node.get("properties", {}).values()]


def _meant(root: Schema, nodes: Iterable[Any]) -> list[Schema]:
    """The schemas that *nodes* lead to, through references and alternatives; each once."""
    found: list[Schema] = []
    waiting = [node for node in nodes if isinstance(node, Mapping)]
    while waiting:
        node = waiting.pop()
        if any(node is known for known in found):
            continue
        found.append(node)
        name = str(node.get("$ref", "")).rpartition("/")[2]
        further = [root.get("$defs", {}).get(name)]
        for word in _ALTERNATIVES:
            further += node.get(word, ())
        waiting += [one for one in further if isinstance(one, Mapping)]
    return found


def _named(nodes: Iterable[Schema], key: Any, root: Schema) -> list[Any]:
    return [_field(node, key, root) for node in nodes]


def _field(node: Schema, key: Any, root: Schema) -> Any:
    known = node.get("properties", {})
    if key in known:
        return known[key]
    beside = node.get("additionalProperties")
    if not beside and known and _hides(known.values(), root):
        return {"secret": True}
    return beside


def _placed(nodes: Iterable[Schema], place: int) -> list[Any]:
    found = []
    for node in nodes:
        positions = node.get("prefixItems", ())
        found.append(positions[place] if place < len(positions) else node.get("items"))
    return found
