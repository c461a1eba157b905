"""The base of every error headway raises on purpose."""

from typing import Any


class HeadwayError(Exception):
    """Base of all errors headway raises: ``except HeadwayError`` catches every one of them.

    >>> from headway.errors import ManifestNotFound
    >>> isinstance(ManifestNotFound("load-users"), HeadwayError)
    True
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Most take other arguments than the message they keep; another process gets the message.
        return _told_again, (type(self), self.args, self.__dict__)


def _told_again(
    kind: type[HeadwayError], arguments: tuple[Any, ...], facts: dict[str, Any]
) -> HeadwayError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(facts)
    return error
