"""The settings of the dashboard; :class:`headway.config.Settings` has them among its own."""

import re
from ipaddress import ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from headway.domain.setting_values import EnvironmentText, File, Flag, Rule

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}", re.ASCII)


def _port(value: object) -> object:
    if isinstance(value, EnvironmentText) and re.fullmatch(r"[0-9]{1,5}", value.strip()):
        return int(value)
    return value


def _text(value: object) -> object:
    if isinstance(value, EnvironmentText):
        return None if value.strip().lower() in ("", "none") else str(value).strip()
    return value


def _names(value: object) -> object:
    if isinstance(value, EnvironmentText):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return tuple(value) if isinstance(value, (list, set, frozenset)) else value


def _host(name: str) -> str:
    if not _HOST.fullmatch(name):
        raise ValueError("not a host name")
    return name.lower()


def _public_url(address: str | None) -> str | None:
    if address is None:
        return None
    parts = urlsplit(address)
    plain = not (parts.query or parts.fragment or "@" in parts.netloc or parts.path.strip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ValueError("not the address of a site")
    _host(parts.hostname)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _network(place: str) -> str:
    return str(ip_network(place))


Host = Annotated[
    str,
    AfterValidator(_host),
    BeforeValidator(_text),
    Rule("must be an address or a host name", "127.0.0.1"),
]
Port = Annotated[
    int,
    Field(ge=1, le=65535),
    BeforeValidator(_port),
    Rule("must be a port from 1 to 65535", 8700),
]
PublicUrl = Annotated[
    str | None,
    AfterValidator(_public_url),
    BeforeValidator(_text),
    Rule(
        "must be http:// or https:// and a host, without a path, or none",
        "https://headway.example.com",
    ),
]
HostNames = Annotated[
    tuple[Annotated[str, AfterValidator(_host)], ...],
    BeforeValidator(_names),
    Rule("must be a list of host names without ports", ("headway.example.com",)),
]
Networks = Annotated[
    tuple[Annotated[str, AfterValidator(_network)], ...],
    BeforeValidator(_names),
    Rule("must be a list of addresses and networks", ("10.0.0.0/8",)),
]


def _default(value: Any, description: str) -> Any:
    return Field(default=value, description=description)


class DashboardSettings(BaseModel):
    """Where dashboard and REST API are served, and to whom."""

    dashboard_enabled: Flag = _default(True, "Whether headway run serves dashboard and REST API.")
    dashboard_host: Host = _default(
        "127.0.0.1", "Address to listen on; any but loopback needs a token to exist."
    )
    dashboard_port: Port = _default(
        8700, "Port to listen on; if the default is taken, the next that is free."
    )
    dashboard_public_url: PublicUrl = _default(
        None, "Address people use behind a proxy; none = the one that is listened on."
    )
    dashboard_allowed_hosts: HostNames = _default(
        (), "Further names in the Host header that are answered."
    )
    dashboard_trusted_proxies: Networks = _default(
        (), "Proxies whose X-Forwarded-For is believed, addresses and networks."
    )
    dashboard_secret_file: File = _default(
        None,
        "File of the secret that signs sessions, the same for all web processes; "
        "none = a new one for each.",
    )
