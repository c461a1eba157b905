from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headway.config import Settings, unknown_variables, variable_name
from headway.domain.due import MisfirePolicy
from headway.domain.readiness import Defaults
from headway.domain.retry import RetryPolicy
from headway.domain.setting_values import as_text, parse_duration
from headway.errors import SettingsError

NAMES = [
    *["max_queued_jobs_per_cycle", "max_work_queue_entries_per_cycle", "max_queued_per_group"],
    *["dashboard_enabled", "dashboard_host", "dashboard_port", "dashboard_public_url"],
    *["dashboard_allowed_hosts", "dashboard_trusted_proxies", "dashboard_secret_file"],
    *["azolla_registry", "azolla_claim_lease", "azolla_max_attempts"],
    *["azolla_query_timeout", "azolla_query_budget", "azolla_manifest_budget"],
    *["manager_enabled", "dispatcher_enabled", "manager_polling_interval"],
    *["dispatcher_polling_interval", "max_active_jobs", "exclude_from_max_active_jobs"],
    *["max_dispatch_attempts"],
    *["starvation_after", "unknown_workflow_timeout"],
    *["dependent_priority_boost", "default_max_retries", "default_retry_delay"],
    *["retry_backoff_multiplier", "max_retry_delay", "retry_jitter"],
    *["default_job_timeout", "cancel_grace"],
    *["stale_pending_timeout", "stale_in_progress_timeout", "default_misfire_policy"],
    *["default_misfire_threshold", "retention_period"],
    *["dead_letter_retention_period", "auto_purge_dead_letters", "cleanup_interval"],
    *["delete_batch_size", "worker_count", "polling_interval", "shutdown_timeout"],
    *["server_lease", "max_crashes"],
    *["seeding_attempts", "seeding_base_delay", "database_start_timeout", "allow_lost_commits"],
]


def problems(environ: dict[str, str] | None = None, **keywords: Any) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        Settings.from_sources(environ or {}, **keywords)
    lines = str(refused.value).split("\n")
    assert all(len(line) < 300 for line in lines)
    return lines


def test_the_settings_are_these() -> None:
    assert list(Settings.model_fields) == NAMES


def test_defaults() -> None:
    settings = Settings.from_sources({})
    assert settings.max_active_jobs == 10
    assert settings.stale_in_progress_timeout == timedelta(hours=1)
    assert settings.default_misfire_policy is MisfirePolicy.FIRE_ONCE_NOW
    assert settings.worker_count >= 1
    assert settings.retry_policy == RetryPolicy()


def test_keywords_win_over_variables_win_over_defaults() -> None:
    environ = {"HEADWAY_MAX_ACTIVE_JOBS": "4", "HEADWAY_WORKER_COUNT": "3", "PATH": "/bin"}
    settings = Settings.from_sources(environ, worker_count=7)
    assert (settings.worker_count, settings.max_active_jobs) == (7, 4)
    assert settings.delete_batch_size == 1000


def test_a_keyword_hides_even_a_broken_variable() -> None:
    assert Settings.from_sources({"HEADWAY_WORKER_COUNT": "x"}, worker_count=7).worker_count == 7


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().max_active_jobs = 5


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("max_active_jobs", "none", None),
        ("max_active_jobs", "", None),
        ("max_queued_jobs_per_cycle", "None", None),
        ("max_work_queue_entries_per_cycle", " 7 ", 7),
        ("manager_enabled", "false", False),
        ("manager_enabled", "ON", True),
        ("exclude_from_max_active_jobs", "etl, report", ("etl", "report")),
        ("exclude_from_max_active_jobs", "", ()),
        ("default_misfire_policy", "do_nothing", MisfirePolicy.DO_NOTHING),
        ("retry_backoff_multiplier", "1.5", 1.5),
        ("retry_backoff_multiplier", "3", 3.0),
        ("retry_jitter", "0.2", 0.2),
        ("shutdown_timeout", "0", timedelta(0)),
        ("shutdown_timeout", "90", timedelta(seconds=90)),
        ("shutdown_timeout", "1h30m", timedelta(minutes=90)),
        ("retention_period", "90d", timedelta(days=90)),
        ("dashboard_port", "8080", 8080),
        ("dashboard_host", "::1", "::1"),
        ("dashboard_public_url", "https://Ops.example.com/", "https://ops.example.com"),
        (
            "dashboard_allowed_hosts",
            "a.example.com, B.example.com",
            ("a.example.com", "b.example.com"),
        ),
        ("dashboard_trusted_proxies", "10.0.0.0/8,::1", ("10.0.0.0/8", "::1/128")),
    ],
)
def test_variables_are_read_as_text(name: str, text: str, value: object) -> None:
    settings = Settings.from_sources({variable_name(name): text})
    assert getattr(settings, name) == value
    assert type(getattr(settings, name)) is type(value)


@pytest.mark.parametrize("name", NAMES)
def test_every_default_can_be_written_as_a_variable(name: str) -> None:
    default = getattr(Settings(), name)
    settings = Settings.from_sources({variable_name(name): as_text(default)})
    assert getattr(settings, name) == default


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90s", 90), ("5m", 300), ("1h", 3600), ("30d", 2592000), ("1h30m", 5400), ("0.5s", 0.5)],
        *[(90, 90), (0.25, 0.25), ("1d2h3m4s", 93784), (timedelta(days=1), 86400), ("15", 15)],
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        *[True, None, "", "h", "5 parsecs", "m5", "1m1h", "-5s", "\u0663s", "1e3", float("nan")],
        *[float("inf"), 1e300, "9" * 5000, "9" * 60 + "d", b"5s", [5]],
    ],
)
def test_what_is_no_duration_is_refused(value: object) -> None:
    (line,) = problems(cleanup_interval=value)
    assert line.startswith("cleanup_interval=")
    assert line.endswith("for example cleanup_interval='1h'")


@given(st.integers(0, 3653 * 86400).map(lambda n: timedelta(seconds=n)))
def test_durations_as_text_round_trip(duration: timedelta) -> None:
    assert parse_duration(as_text(duration)) == duration


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("dashboard_port", 0, "from 1 to 65535"),
        ("dashboard_port", 70000, "from 1 to 65535"),
        ("dashboard_host", "here/there", "host name"),
        ("dashboard_public_url", "ops.example.com", "http:// or https://"),
        ("dashboard_public_url", "https://me@ops.example.com", "http:// or https://"),
        ("dashboard_public_url", "https://ops.example.com/a", "without a path"),
        ("dashboard_allowed_hosts", ["*"], "list of host names"),
        ("dashboard_allowed_hosts", ["a.example.com:80"], "without ports"),
        ("dashboard_trusted_proxies", ["everybody"], "addresses and networks"),
        ("max_active_jobs", 0, "whole number from 1"),
        ("max_active_jobs", "5", "whole number from 1"),
        ("max_active_jobs", 1.5, "or none"),
        ("worker_count", True, "from 1 to 4096"),
        ("worker_count", None, "from 1 to 4096"),
        ("dependent_priority_boost", 32, "from 0 to 31"),
        ("dependent_priority_boost", -1, "from 0 to 31"),
        ("default_max_retries", -1, "from 0"),
        ("retry_backoff_multiplier", 0.9, "from 1 to 100"),
        ("retry_jitter", 1.5, "from 0 to 1"),
        ("retry_backoff_multiplier", float("nan"), "from 1 to 100"),
        ("polling_interval", 0, "0.01 seconds"),
        ("polling_interval", timedelta.max, "10 years"),
        ("default_misfire_policy", "later", "fire_once_now or do_nothing"),
        ("default_misfire_policy", "catch_up", "fire_once_now or do_nothing"),
        ("manager_enabled", "true", "true or false"),
        ("manager_enabled", 1, "true or false"),
        ("exclude_from_max_active_jobs", "etl", "list of workflow names"),
        ("exclude_from_max_active_jobs", [""], "list of workflow names"),
        ("exclude_from_max_active_jobs", [len], "list of workflow names"),
    ],
)
def test_bad_keywords_are_refused(name: str, value: object, rule: str) -> None:
    (line,) = problems({}, **{name: value})
    assert line.startswith(f"{name}=")
    assert rule in line
    assert f"for example {name}=" in line


RANGES: list[tuple[str, Any, Any, Any, Any, str]] = [
    ("max_crashes", 0, 1, 1_000_000, 1_000_001, "a whole number from 1 to 1000000"),
    ("worker_count", 0, 1, 4096, 4097, "a whole number from 1 to 4096"),
    ("default_max_retries", -1, 0, 1_000_000, 1_000_001, "a whole number from 0 to 1000000"),
    ("dependent_priority_boost", -1, 0, 31, 32, "a whole number from 0 to 31"),
    (
        "max_queued_per_group",
        0,
        1,
        1_000_000,
        1_000_001,
        "a whole number from 1 to 1000000, or none for no limit",
    ),
    ("retry_backoff_multiplier", 0.99, 1.0, 100.0, 100.1, "a number from 1 to 100"),
    ("retry_jitter", -0.01, 0.0, 1.0, 1.01, "a number from 0 to 1"),
    (
        "polling_interval",
        timedelta(milliseconds=9),
        timedelta(milliseconds=10),
        timedelta(days=3653),
        timedelta(days=3653, seconds=1),
        "a duration from 0.01 seconds to 10 years",
    ),
    (
        "shutdown_timeout",
        timedelta(seconds=-1),
        timedelta(0),
        timedelta(days=3653),
        timedelta(days=3653, seconds=1),
        "a duration from 0 seconds to 10 years",
    ),
    (
        "server_lease",
        timedelta(seconds=0.9),
        timedelta(seconds=1),
        timedelta(hours=1),
        timedelta(seconds=3601),
        "a duration from 1 second to 1 hour, or none",
    ),
    (
        "azolla_claim_lease",
        timedelta(seconds=0.9),
        timedelta(seconds=1),
        timedelta(hours=1),
        timedelta(seconds=3601),
        "a duration from 1 second to 1 hour",
    ),
    ("dashboard_port", 0, 1, 65535, 65536, "a port from 1 to 65535"),
    (
        "azolla_registry",
        "",
        "x",
        "x" * 4096,
        "x" * 4097,
        "the path of a file, or none",
    ),
]


@pytest.mark.parametrize(
    ("name", "below", "lowest", "highest", "above", "rule"), RANGES, ids=lambda one: str(one)[:30]
)
def test_the_ends_of_a_range_are_taken_and_what_is_beyond_is_refused(
    name: str, below: Any, lowest: Any, highest: Any, above: Any, rule: str
) -> None:
    for value in (lowest, highest):
        assert getattr(Settings(**{name: value}), name) == value
    for value in (below, above):
        (line,) = problems({}, **{name: value})
        assert f" must be {rule}, for example {name}=" in line


@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("manager_enabled", "manager_enabled=True"),
        ("allow_lost_commits", "allow_lost_commits=True"),
        ("max_active_jobs", "max_active_jobs=10"),
        ("worker_count", "worker_count=4"),
        ("server_lease", "server_lease='15s'"),
        ("retry_jitter", "retry_jitter=0.2"),
        ("azolla_registry", "azolla_registry='azolla.toml'"),
        ("dashboard_host", "dashboard_host='127.0.0.1'"),
        ("dashboard_port", "dashboard_port=8700"),
        ("dashboard_public_url", "dashboard_public_url='https://headway.example.com'"),
        ("dashboard_allowed_hosts", "dashboard_allowed_hosts=('headway.example.com',)"),
        ("dashboard_trusted_proxies", "dashboard_trusted_proxies=('10.0.0.0/8',)"),
        ("exclude_from_max_active_jobs", "exclude_from_max_active_jobs=('nightly-report',)"),
        ("default_misfire_policy", "default_misfire_policy='fire_once_now'"),
        ("azolla_claim_lease", "azolla_claim_lease='30s'"),
    ],
)
def test_the_example_of_a_refusal_is_a_value_that_is_taken(name: str, example: str) -> None:
    (line,) = problems({}, **{name: object()})
    assert line.endswith(f", for example {example}")


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("exclude_from_max_active_jobs", ["a", "b"], ("a", "b")),
        ("exclude_from_max_active_jobs", {"a"}, ("a",)),
        ("exclude_from_max_active_jobs", frozenset({"a"}), ("a",)),
        ("dashboard_allowed_hosts", ["A.example.com"], ("a.example.com",)),
        ("dashboard_allowed_hosts", {"a"}, ("a",)),
        ("dashboard_trusted_proxies", ["10.0.0.1"], ("10.0.0.1/32",)),
        ("dashboard_host", "LocalHost", "localhost"),
        ("dashboard_host", "x" * 253, "x" * 253),
        ("dashboard_public_url", "http://Ops.example.com:8080", "http://ops.example.com:8080"),
        ("default_misfire_policy", "do_nothing", MisfirePolicy.DO_NOTHING),
        ("azolla_registry", Path("azolla.toml"), "azolla.toml"),
        ("dashboard_secret_file", None, None),
        ("server_lease", "20s", timedelta(seconds=20)),
        ("server_lease", None, None),
    ],
)
def test_keywords_are_taken_as_people_write_them(name: str, value: object, kept: object) -> None:
    assert getattr(Settings(**{name: value}), name) == kept


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dashboard_public_url", "https://ops.example.com/?a=b"),
        ("dashboard_public_url", "https://ops.example.com/#a"),
        ("dashboard_public_url", "ftp://ops.example.com"),
        ("dashboard_public_url", "https://"),
        ("dashboard_public_url", "https://under_score.example.com"),
        ("dashboard_host", "-a"),
        ("dashboard_host", "x" * 254),
        ("dashboard_port", "8700"),
        ("dashboard_trusted_proxies", ["10.0.0.1/8"]),
        ("exclude_from_max_active_jobs", ["x" * 256]),
        ("server_lease", True),
        ("azolla_registry", 5),
    ],
)
def test_what_is_no_address_name_or_path_is_refused(name: str, value: object) -> None:
    (line,) = problems({}, **{name: value})
    assert line.startswith(f"{name}=")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("server_lease", " None ", None),
        ("server_lease", "", None),
        ("server_lease", "20s", timedelta(seconds=20)),
        ("azolla_registry", " NONE ", None),
        ("azolla_registry", "", None),
        ("azolla_registry", "peers.toml", "peers.toml"),
        ("dashboard_public_url", "None", None),
        ("dashboard_public_url", " ", None),
        ("dashboard_host", " ::1 ", "::1"),
        ("dashboard_port", " 8080 ", 8080),
        ("manager_enabled", " No ", False),
        ("manager_enabled", "1", True),
        ("retry_jitter", " 0.5 ", 0.5),
        ("max_crashes", " 7 ", 7),
        ("dashboard_allowed_hosts", " a , ,b", ("a", "b")),
        ("exclude_from_max_active_jobs", " a , ,b", ("a", "b")),
        ("shutdown_timeout", " 1H ", timedelta(hours=1)),
    ],
)
def test_variables_may_have_blanks_and_say_none(name: str, text: str, value: object) -> None:
    assert getattr(Settings.from_sources({variable_name(name): text}), name) == value


def test_only_what_is_left_out_of_a_wrong_pair_is_compared() -> None:
    (line,) = problems(default_job_timeout=0, stale_in_progress_timeout="1m")
    assert line.startswith("default_job_timeout=0 must be a duration")
    (line,) = problems(default_job_timeout="2h", stale_in_progress_timeout=0)
    assert line.startswith("stale_in_progress_timeout=0 must be a duration")


def test_what_counts_for_manifests_that_say_nothing_of_their_own() -> None:
    settings = Settings(
        default_retry_delay="90s",
        default_max_retries=7,
        default_misfire_policy="do_nothing",
        default_misfire_threshold="2m",
    )
    assert settings.manifest_defaults == Defaults(
        settings.retry_policy, 7, MisfirePolicy.DO_NOTHING, timedelta(minutes=2)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        (True, "true"),
        (False, "false"),
        (timedelta(0), "0s"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4.5), "1d2h3m4.5s"),
        (timedelta(hours=25), "1d1h"),
        (("a", "b"), "a,b"),
        (7, "7"),
    ],
)
def test_values_as_one_writes_them_in_a_variable(value: object, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("worker_count", ""), ("worker_count", "four"), ("manager_enabled", "maybe")],
        *[("retention_period", "none"), ("max_active_jobs", "-1"), ("max_active_jobs", "1_0")],
        *[
            ("retry_backoff_multiplier", "inf"),
            ("shutdown_timeout", "soon\n"),
            ("shutdown_timeout", ""),
        ],
    ],
)
def test_bad_variables_are_refused_under_their_own_name(name: str, text: str) -> None:
    (line,) = problems({variable_name(name): text})
    assert line.startswith(f"{variable_name(name)}=")
    assert f"for example {variable_name(name)}=" in line


def test_all_problems_are_listed_at_once() -> None:
    lines = problems(
        {"HEADWAY_WORKER_COUNT": "x", "HEADWAY_MAX_RETRY_DELAY": "1m"},
        max_actve_jobs=3,
        dependent_priority_boost=99,
        default_job_timeout="2h",
    )
    assert len(lines) == 5
    assert "max_actve_jobs is not a setting; did you mean max_active_jobs?" in lines


def test_a_keyword_like_nothing_gets_no_suggestion() -> None:
    assert problems(zzz=1) == ["zzz is not a setting"]


def test_stale_in_progress_timeout_must_be_above_the_job_timeout() -> None:
    assert problems(default_job_timeout=timedelta(hours=1)) == [
        "stale_in_progress_timeout='1h' must be above default_job_timeout='1h', "
        "for example stale_in_progress_timeout='2h'"
    ]
    Settings(default_job_timeout="59m59s")


def test_max_retry_delay_must_not_be_below_the_first() -> None:
    (line,) = problems({"HEADWAY_MAX_RETRY_DELAY": "1m"})
    assert line == (
        "HEADWAY_MAX_RETRY_DELAY=1m must be at least default_retry_delay='5m', "
        "for example HEADWAY_MAX_RETRY_DELAY=10m"
    )
    Settings(default_retry_delay="1h", max_retry_delay="1h")


def test_unknown_variables_are_reported_with_the_nearest_name() -> None:
    environ = {
        "HEADWAY_MAX_ACTIV_JOBS": "4",
        "HEADWAY_QQQ": "1",
        "HEADWAY_MAX_ACTIVE_JOBS": "4",
        "HEADWAY_DATABASE_URL": "sqlite://",
        "HEADWAY_TESTS_POSTGRES": "1",
        "HEADWAY_TEST_SLOW": "1",
        "HOME": "/root",
    }
    assert unknown_variables(environ) == [
        "HEADWAY_MAX_ACTIV_JOBS is not a setting and is ignored; "
        "did you mean HEADWAY_MAX_ACTIVE_JOBS?",
        "HEADWAY_QQQ is not a setting and is ignored",
    ]
    assert Settings.from_sources(environ).max_active_jobs == 4


def test_the_backoff_has_every_value_that_was_set() -> None:
    settings = Settings(
        default_retry_delay="90s",
        retry_backoff_multiplier=3.0,
        max_retry_delay="2h",
        retry_jitter=0.25,
    )
    assert settings.retry_policy == RetryPolicy(
        timedelta(seconds=90), 3.0, timedelta(hours=2), 0.25
    )
