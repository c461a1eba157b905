"""Settings as they are shown: value, default, origin, meaning and variable, and no secret."""

from __future__ import annotations

import pytest

from headway.config import Settings
from headway.history.settings import MASKED, Origin, ShownSetting, masked, shown_settings

VARIABLE = "HEADWAY_MAX_ACTIVE_JOBS"


def shown(settings: Settings, environ: dict[str, str] | None = None) -> dict[str, ShownSetting]:
    return {one.name: one for one in shown_settings(settings, environ or {})}


def test_a_setting_is_shown_with_everything_about_it() -> None:
    one = shown(Settings(max_active_jobs=4))["max_active_jobs"]
    meaning = Settings.model_fields["max_active_jobs"].description
    assert meaning
    assert one == ShownSetting("max_active_jobs", "4", "10", Origin.CODE, meaning, VARIABLE)


def test_all_of_them_are_shown_in_the_order_of_their_page() -> None:
    settings = shown(Settings(worker_count=3))
    assert list(settings) == list(Settings.model_fields)
    assert all(one.meaning for one in settings.values())
    assert settings["worker_count"].default == "CPU count"
    assert settings["max_active_jobs"].origin is Origin.DEFAULT


@pytest.mark.parametrize(
    ("said", "origin"),
    [
        (None, Origin.CODE),
        ("4", Origin.ENVIRONMENT),
        ("5", Origin.CODE),
        ("many", Origin.CODE),
    ],
)
def test_a_value_comes_from_the_environment_if_that_says_the_same(
    said: str | None, origin: Origin
) -> None:
    environ = {} if said is None else {VARIABLE: said}
    assert shown(Settings(max_active_jobs=4), environ)["max_active_jobs"].origin is origin


def test_a_variable_that_came_too_late_leaves_the_default() -> None:
    assert shown(Settings(), {VARIABLE: "4"})["max_active_jobs"].origin is Origin.DEFAULT


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("token", "hw_123", MASKED),
        ("api_keys", "hw_123", MASKED),
        ("database_password", "hush", MASKED),
        ("token", "none", "none"),
        ("secret", "", ""),
        ("token_lifetime", "90d", "90d"),
        ("monkey", "hw_123", "hw_123"),
        ("broker", "redis://me:hush@host/1", f"redis://me:{MASKED}@host/1"),
        ("broker", "redis://:hush@host", f"redis://:{MASKED}@host"),
        ("broker", "redis://host:6379/1", "redis://host:6379/1"),
    ],
)
def test_a_secret_is_masked_wherever_it_stands(name: str, value: str, told: str) -> None:
    assert masked(name, value) == told
