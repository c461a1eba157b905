"""JSON as the API writes and reads it: ASCII out, and nothing ambiguous in."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from headway.definition.json_text import is_nested_within
from headway.domain.text import shown

# An input has at most 32 levels, in a body that names it; the rest is there for clearer answers.
DEEPEST_BODY = 64
TOO_DEEP = f"the body is nested more than {DEEPEST_BODY} levels deep; inputs may have 32 levels"


class AsciiJson(JSONResponse):
    r"""Written in ASCII: stored text may hold what cannot be UTF-8.

    >>> AsciiJson({"note": "\ud800"}).body
    b'{"note":"\\ud800"}'
    """

    def render(self, content: Any) -> bytes:
        """*content* as JSON."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class JsonRequest(Request):
    """A request whose body is one JSON value, read so that no part of it is lost."""

    async def json(self) -> Any:
        """The value; what is wrong with it is an answer, not an error of ours."""
        return decoded(await self.body())


def decoded(body: bytes) -> Any:
    """The value behind *body*, or a refusal that says what is wrong.

    >>> decoded(b'{"limit": 5}')
    {'limit': 5}
    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise HTTPException(422, "the body is not UTF-8; JSON has to be") from None
    except RecursionError:
        raise HTTPException(422, TOO_DEEP) from None
    except ValueError as error:
        raise HTTPException(422, f"the body is not JSON: {error}; for example {{}}") from None
    if not is_nested_within(value, DEEPEST_BODY):
        raise HTTPException(422, TOO_DEEP)
    return value


def portable(value: Any) -> Any:
    r"""*value* with keys that any JSON writer takes; text in values may hold anything.

    >>> portable({"\ud800": ["\ud800"]})
    {'\\ud800': ['\ud800']}
    """
    if isinstance(value, Mapping):
        return {
            key.encode("utf-8", "backslashreplace").decode(): portable(part)
            for key, part in value.items()
        }
    return [portable(part) for part in value] if isinstance(value, list) else value


def stored(text: str | None) -> Any:
    """The value behind JSON that was stored; text that is none is shown as it is.

    >>> stored('{"rows": 3}'), stored(None)
    ({'rows': 3}, None)
    """
    if text is None:
        return None
    try:
        return portable(json.loads(text))
    except ValueError:
        return text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"{shown(twice)} is the key of two values")
    return found


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_twice)
