from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from headway.domain.jitter import jitter

TEN = datetime(2025, 1, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

KEYS = st.text(max_size=50) | st.just("\ud800")
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))


@given(KEYS, MOMENTS, st.integers(0, 366 * 86400))
def test_jitter_is_in_range_stable_and_whole_seconds(
    key: str, nominal: datetime, seconds: int
) -> None:
    found = jitter(key, nominal, timedelta(seconds=seconds))
    assert timedelta(0) <= found <= timedelta(seconds=seconds)
    assert found.microseconds == 0
    assert found == jitter(key, nominal, timedelta(seconds=seconds))
    assert found == jitter(
        key, nominal.astimezone(ZoneInfo("Asia/Tokyo")), timedelta(seconds=seconds)
    )


def test_values_never_change_between_versions() -> None:
    # Not stored anywhere: another formula would move every run at the next deployment.
    assert [jitter(f"load-{n}", TEN, MINUTE).seconds for n in range(5)] == [3, 2, 29, 5, 10]


def test_keys_and_occurrences_are_spread_evenly() -> None:
    by_key = Counter(jitter(f"load-{n}", TEN, timedelta(seconds=9)) for n in range(10_000))
    by_time = Counter(jitter("load", TEN + n * MINUTE, timedelta(seconds=9)) for n in range(10_000))
    for counts in (by_key, by_time):
        assert len(counts) == 10
        assert 850 < min(counts.values()) <= max(counts.values()) < 1150
