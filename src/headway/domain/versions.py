"""The version of something people edit, so that nobody overwrites what they have not seen."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(microseconds=1)


def version_of(updated_at: datetime) -> str:
    """The version a row has since it was written at that moment.

    >>> version_of(datetime(2026, 1, 5, 12, tzinfo=UTC))
    '647a2cc697000'
    """
    return f"{(updated_at - _EPOCH) // _STEP:x}"


def next_moment(updated_at: datetime, now: datetime) -> datetime:
    """When a row changed *now* says it was updated: always later than before.

    >>> noon = datetime(2026, 1, 5, 12, tzinfo=UTC)
    >>> next_moment(noon, noon).microsecond
    1
    """
    return max(now, updated_at + _STEP)
