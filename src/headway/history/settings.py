"""Every setting as its page shows it: value, default, where the value comes from, meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headway.config import Settings, variable_name
from headway.domain.setting_values import EnvironmentText, as_text
from headway.errors import SettingsError

MASKED = "••••••"
CPU_COUNT = "CPU count"
_SECRET = re.compile(r"(^|_)(secret|password|token|key)s?$")
_CREDENTIALS = re.compile(r"(?<=://)([^/@:\s]*):[^/@\s]*@")


class Origin(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    CODE = "code"


@dataclass(frozen=True)
class ShownSetting:
    """A setting in words."""

    name: str
    value: str
    default: str
    origin: Origin
    meaning: str
    variable: str


def shown_settings(settings: Settings, environ: Mapping[str, str]) -> list[ShownSetting]:
    """All settings in the order of their page; what is secret is masked.

    >>> shown = shown_settings(Settings(max_active_jobs=4), {})
    >>> [one] = [one for one in shown if one.name == "max_active_jobs"]
    >>> one.value, one.default, str(one.origin)
    ('4', '10', 'code')
    """
    return [
        ShownSetting(
            name,
            masked(name, as_text(getattr(settings, name))),
            CPU_COUNT if field.default_factory else as_text(field.default),
            _origin(settings, name, environ),
            field.description or "",
            variable_name(name),
        )
        for name, field in type(settings).model_fields.items()
    ]


def masked(name: str, value: str) -> str:
    """*value* as anybody may see it: no secret, and no password in an address.

    >>> masked("api_token", "hw_123"), masked("broker", "redis://me:secret@host/1")
    ('••••••', 'redis://me:••••••@host/1')
    """
    if _SECRET.search(name) and value not in ("none", ""):
        return MASKED
    return _CREDENTIALS.sub(rf"\1:{MASKED}@", value)


def _origin(settings: Settings, name: str, environ: Mapping[str, str]) -> Origin:
    if name not in settings.model_fields_set:
        return Origin.DEFAULT
    said = environ.get(variable_name(name))
    if said is None:
        return Origin.CODE
    try:
        read = getattr(Settings(**{name: EnvironmentText(said)}), name)
    except SettingsError:
        return Origin.CODE
    return Origin.ENVIRONMENT if read == getattr(settings, name) else Origin.CODE
