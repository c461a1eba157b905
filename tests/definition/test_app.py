"""Headway: what is declared, what is refused in one line, and where the database comes from."""

import logging
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import make_url

from headway import Group, Headway, HeadwayError, Run, cron, every, once
from headway.config import Settings
from headway.definition.app import DEFAULT_DATABASE_URL
from headway.domain.manifest import Manifest
from headway.domain.schedule import Never
from headway.errors import DefinitionError, SettingsError, UnknownWorkflow


@pytest.fixture
def hw() -> Headway:
    hw = Headway("warehouse")

    @hw.workflow
    def extract(table: str) -> None: ...

    return hw


def declared(hw: Headway, *arguments: Any, **options: Any) -> Manifest:
    """The manifest that a call of schedule declares."""
    hw.schedule(*arguments, **options)
    return hw.declaration().manifests[-1]


# Workflows


def test_the_decorator_gives_the_function_back_and_registers_it_by_its_name(hw: Headway) -> None:
    def load(table: str, run: Run) -> int:
        return len(table)

    assert hw.workflow(load) is load
    assert hw.registry.find("load") is hw.registry.find(load)
    assert hw.registry.names() == ("extract", "load")


def test_the_decorator_takes_a_name(hw: Headway) -> None:
    @hw.workflow("load-all")
    async def load(table: str) -> None: ...

    assert hw.registry.find(load).name == "load-all"


def test_a_chain_of_steps_has_a_name_and_can_be_scheduled(hw: Headway) -> None:
    def find(table: str) -> list[int]:
        return [len(table)]

    async def store(rows: list[int]) -> None: ...

    delta = hw.workflow("delta-import", steps=(find, store))

    assert declared(hw, delta, "delta-users", "users").workflow == "delta-import"


def test_a_workflow_is_scheduled_by_function_by_name_or_by_itself(hw: Headway) -> None:
    function = hw.registry.find("extract").workflow.steps[0].function
    given: list[Any] = ["extract", function, hw.registry.find("extract").workflow]

    manifests = [declared(hw, one, f"extract-{number}", "t") for number, one in enumerate(given)]

    assert {manifest.workflow for manifest in manifests} == {"extract"}


def test_another_function_under_a_name_that_is_taken_is_refused(hw: Headway) -> None:
    def other(table: str) -> None: ...

    with pytest.raises(DefinitionError, match="'extract': is already registered with other code"):
        hw.workflow("extract")(other)


# Manifests


def test_what_schedule_declares(hw: Headway) -> None:
    manifest = declared(
        hw,
        "extract",
        "extract-users",
        "users",
        every(hours=1),
        group=Group("users", max_active_jobs=4, priority=20),
        priority=7,
        max_retries=0,
        timeout=timedelta(minutes=5),
        enabled=False,
    )

    assert (manifest.external_id, manifest.workflow) == ("extract-users", "extract")
    assert (manifest.input, manifest.input_type) == ('"users"', "str")
    assert (manifest.schedule, manifest.group.priority) == (every(hours=1), 20)
    assert (manifest.priority, manifest.max_retries) == (7, 0)
    assert (manifest.timeout, manifest.enabled) == (timedelta(minutes=5), False)
    assert hw.declaration().manifests == (manifest,)
    assert hw.declaration().groups == {"users": manifest.group}


def test_without_options_everything_is_the_deployments_default(hw: Headway) -> None:
    manifest = declared(hw, "extract", "extract-users", "users")

    assert manifest.schedule == Never()
    assert (manifest.max_retries, manifest.timeout, manifest.enabled) == (None, None, True)
    assert manifest.group == Group("extract-users"), "a group of its own"


def test_a_group_nobody_declared_starts_with_its_manifests_priority(hw: Headway) -> None:
    manifest = declared(hw, "extract", "extract-users", "users", group="users", priority=9)

    assert manifest.group == Group("users", priority=9)
    assert hw.declaration().groups == {}, "named, not declared: what operators set stays"


def test_a_group_is_declared_once_and_named_elsewhere(hw: Headway) -> None:
    users = Group("users", max_active_jobs=4)
    hw.schedule("extract", "extract-users", "users", group=users)

    named = declared(hw, "extract", "extract-rows", "rows", group="users")
    assert named.group.name == "users"
    again = declared(hw, "extract", "extract-more", "more", group=Group("users", 4))
    assert again.group == users
    assert hw.declaration().groups == {"users": users}


def refusal(hw: Headway, external_id: Any = "extract-users", **options: Any) -> str:
    """The one line in which this declaration is refused; nothing of it is kept."""
    before = hw.declaration()
    arguments = {"input": "users"} | options
    with pytest.raises(HeadwayError) as refused:
        hw.schedule("extract", external_id, **arguments)
    assert isinstance(refused.value, ValueError | LookupError)
    assert hw.declaration() == before
    message = str(refused.value)
    assert "\n" not in message and len(message) < 400
    return message


@pytest.mark.parametrize(
    ("options", "field", "value", "example"),
    [
        ({"priority": 32}, "priority", "32", "for example 10"),
        ({"priority": -1}, "priority", "-1", "for example 10"),
        ({"priority": True}, "priority", "True", "for example 10"),
        ({"max_retries": -1}, "max_retries", "-1", "for example 3"),
        ({"max_retries": 2.5}, "max_retries", "2.5", "for example 3"),
        ({"timeout": timedelta(0)}, "timeout", "datetime.timedelta(0)", "timedelta(minutes=20)"),
        ({"timeout": 60}, "timeout", "60", "timedelta(minutes=20)"),
        ({"schedule": "hourly"}, "schedule", "'hourly'", "for example every(hours=1)"),
        ({"schedule": 3600}, "schedule", "3600", "for example every(hours=1)"),
        ({"input": 7}, "input", "7", 'for example "text"'),
    ],
)
def test_a_bad_option_is_refused_with_field_value_rule_and_example(
    hw: Headway, options: dict[str, Any], field: str, value: str, example: str
) -> None:
    message = refusal(hw, **options)

    assert message.startswith(("extract-users: ", "group 'extract-users': "))
    assert f"{field} = {value}: " in message
    assert example in message


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300, 7, None])
def test_a_bad_name_is_refused_wherever_it_stands(hw: Headway, name: Any) -> None:
    assert "external_id" in refusal(hw, name)
    if name is not None:
        assert "group" in refusal(hw, group=name)
    with pytest.raises(HeadwayError, match="application name"):
        Headway(name)


def test_a_bad_group_is_refused_when_it_is_made() -> None:
    wrong: list[dict[str, Any]] = [{"max_active_jobs": 0}, {"max_active_jobs": 1.5}]
    for options in [*wrong, {"priority": 99}]:
        with pytest.raises(DefinitionError) as refused:
            Group("users", **options)
        [(field, value)] = options.items()
        assert f"group 'users': {field} = {value!r}: must be" in str(refused.value)


def test_an_id_declared_twice_is_refused(hw: Headway) -> None:
    hw.schedule("extract", "extract-users", "users")

    message = refusal(hw)

    assert "external_id = 'extract-users': is already declared" in message
    assert "'extract-users-2'" in message


def test_ids_that_only_look_different_are_the_same(hw: Headway) -> None:
    hw.schedule("extract", "caf\u00e9", "users")

    assert "is already declared" in refusal(hw, "cafe\u0301")


def test_one_group_with_two_meanings_is_refused(hw: Headway) -> None:
    hw.schedule("extract", "extract-rows", "rows", group=Group("users", max_active_jobs=4))

    message = refusal(hw, group=Group("users", max_active_jobs=5))

    assert "group 'users' is declared twice with different values" in message
    assert "max_active_jobs=4" in message and "max_active_jobs=5" in message
    assert "group='users'" in message, "and what to write instead"


def test_a_group_named_first_and_declared_later_is_the_declared_one(hw: Headway) -> None:
    hw.schedule("extract", "extract-rows", "rows", group="users")
    hw.schedule("extract", "extract-users", "users", group=Group("users", max_active_jobs=4))

    assert hw.declaration().groups == {"users": Group("users", max_active_jobs=4)}


def test_a_workflow_nobody_registered_is_refused(hw: Headway) -> None:
    def load(table: str) -> None: ...

    for reference in ("load", load):
        with pytest.raises(UnknownWorkflow, match="'load' is not registered here"):
            hw.schedule(reference, "load-users", "users")


def test_every_kind_of_schedule_is_taken(hw: Headway) -> None:
    schedules: list[Any] = [
        every(minutes=5),
        cron("0 6 * * *"),
        once(datetime(2030, 1, 1, tzinfo=UTC)),
    ]
    for number, schedule in enumerate(schedules):
        assert declared(hw, "extract", f"extract-{number}", "t", schedule).schedule == schedule


# The database and the settings


def test_the_database_is_named_by_keyword_then_environment_then_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HEADWAY_DATABASE_URL", raising=False)
    assert Headway().database_url == DEFAULT_DATABASE_URL == "sqlite:///headway.db"

    monkeypatch.setenv("HEADWAY_DATABASE_URL", "postgresql://db/app")
    assert Headway().database_url == "postgresql://db/app"
    assert Headway(database_url="sqlite:///my.db").database_url == "sqlite:///my.db"

    monkeypatch.setenv("HEADWAY_DATABASE_URL", "")
    assert Headway().database_url == DEFAULT_DATABASE_URL


def test_declaring_opens_no_database(hw: Headway) -> None:
    app = Headway(database_url="postgresql://nowhere.invalid/app")
    app.workflow("extract")(hw.registry.find("extract").workflow.steps[0].function)
    app.schedule("extract", "extract-users", "users")


def test_settings_come_as_keywords_or_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_MAX_ACTIVE_JOBS", "4")

    assert Headway(worker_count=3).settings == Settings(max_active_jobs=4, worker_count=3)


def test_a_bad_setting_is_refused_with_its_name_value_rule_and_example() -> None:
    with pytest.raises(SettingsError) as refused:
        Headway(max_active_jobs=0)

    message = str(refused.value)
    assert message.startswith("max_active_jobs=0 must be") and "for example" in message


def test_a_misspelt_setting_is_refused_with_the_right_name() -> None:
    with pytest.raises(SettingsError, match=r"did you mean max_active_jobs\?"):
        Headway(max_active_job=4)


def test_workflows_are_excluded_by_function_by_name_or_by_chain() -> None:
    def internal() -> None: ...

    chain = Headway().workflow("nightly", steps=(internal,))

    hw = Headway(exclude_from_max_active_jobs=[internal, "other", chain])

    assert hw.settings.exclude_from_max_active_jobs == ("internal", "other", "nightly")


@pytest.mark.parametrize("kind", [tuple, set, frozenset])
def test_excluded_workflows_may_be_any_collection(kind: Any) -> None:
    def internal() -> None: ...

    hw = Headway(exclude_from_max_active_jobs=kind([internal]))

    assert hw.settings.exclude_from_max_active_jobs == ("internal",)


def test_a_store_may_be_opened_with_a_clock_of_its_own(sqlite_url: str) -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    hw = Headway("warehouse", database_url=sqlite_url)

    with closing(hw.open_store(clock=lambda: moment)) as store, store.reading() as tx:
        assert tx.now == moment


def test_the_runtime_acts_for_the_application_within_its_limits(sqlite_url: str) -> None:
    hw = Headway("warehouse", database_url=sqlite_url, max_queued_per_group=7)

    with closing(hw.runtime.store):
        told = (hw.runtime.application, hw.runtime.owner, hw.runtime.most_queued)
        assert told == ("warehouse", "warehouse:runtime", 7)
        assert hw.runtime.store.url.database == make_url(sqlite_url).database


def test_a_variable_that_sets_nothing_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HEADWAY_WORKER_COUN", "4")

    Headway()

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "HEADWAY_WORKER_COUN is not a setting" in record.message
    assert "did you mean HEADWAY_WORKER_COUNT?" in record.message


def test_a_forked_process_opens_the_database_anew(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hw = Headway("forked", database_url=sqlite_url)
    parents = hw.runtime
    assert hw.runtime is parents

    monkeypatch.setattr("os.getpid", lambda: 4711)

    assert hw.runtime is not parents
    assert hw.runtime is hw.runtime
