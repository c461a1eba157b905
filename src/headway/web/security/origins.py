"""Where a request comes from and which host it asks for: nothing of it is taken on trust."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request

LOOPBACK = ("localhost", "127.0.0.1", "::1")
SAME_ORIGIN = "same-origin"


def host_name(host: str) -> str | None:
    """The name or address in a Host header, without its port; None if it is none.

    >>> host_name("Localhost:8700"), host_name("[::1]:8700"), host_name("evil.com/@x")
    ('localhost', '::1', None)
    """
    try:
        parts = urlsplit(f"//{host}")
        parts.port  # noqa: B018 it is read to see whether it is a number
    except ValueError:
        return None
    plain = parts.netloc == host and "@" not in host and not host.endswith(":")
    return parts.hostname.rstrip(".") if plain and parts.hostname and host.isascii() else None


@dataclass(frozen=True)
class Hosts:
    """The names this application answers to; None leaves that to whoever it is mounted in.

    >>> Hosts(("headway.example.com",)).know("headway.example.com.evil.com")
    False
    """

    names: Collection[str] | None = LOOPBACK

    def know(self, host: str) -> bool:
        """Whether a Host header names one of them."""
        return self.names is None or host_name(host) in self.names


def is_same_origin(request: Request, public_origin: str | None) -> bool:
    """Whether a page of this application sent *request*, as far as the browser tells.

    Without a word about it, it did not: every browser says where a form was sent from.

    >>> headers = [(b"host", b"x:1"), (b"origin", b"http://evil.com")]
    >>> is_same_origin(Request({"type": "http", "headers": headers}), None)
    False
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site != SAME_ORIGIN:
        return False
    if origin in (None, "null"):  # so it is with Referrer-Policy: no-referrer
        return site == SAME_ORIGIN
    host = request.headers.get("host", "")
    return origin in (public_origin, f"http://{host}", f"https://{host}")


@dataclass(frozen=True)
class Proxies:
    """The proxies whose word about the client's address counts.

    >>> proxies = Proxies.at(["10.0.0.0/8"])
    >>> proxies.client("10.1.2.3", "198.51.100.7, 10.9.9.9"), proxies.client("192.0.2.1", "8.8.8.8")
    ('198.51.100.7', '192.0.2.1')
    """

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def at(cls, places: Iterable[str]) -> "Proxies":
        """The proxies at these addresses and networks."""
        return cls(tuple(ip_network(place) for place in places))

    def client(self, peer: str, forwarded_for: str) -> str:
        """Who asks: the nearest address that no proxy of ours has."""
        nearest = peer
        for hop in reversed(forwarded_for.split(",")):
            if not self.trust(nearest) or not _is_address(hop.strip()):
                break
            nearest = hop.strip()
        return nearest

    def trust(self, address: str) -> bool:
        """Return whether *address* is one of the proxies."""
        return _is_address(address) and any(
            ip_address(address) in network for network in self.networks
        )


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def client_address(scope: Any, proxies: Proxies) -> str:
    """The address a request comes from.

    >>> client_address({"client": ("192.0.2.1", 5), "headers": []}, Proxies())
    '192.0.2.1'
    """
    peer = (scope.get("client") or ("unknown", 0))[0]
    told = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return proxies.client(str(peer), b",".join(told).decode("latin-1"))
