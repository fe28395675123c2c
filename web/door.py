"""Who may come in: the names that the server answers to, and the token where one is needed. Pure."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_UNSPECIFIED = ("0.0.0.0", "::", "")  # noqa: S104 (compared with, never bound to)


@dataclass(frozen=True, slots=True)
class Door:
    """What is asked of a request before anything is done for it."""

    names: frozenset[str]  # Lower case, without a port; other names may be somebody's who had them lead here.
    takes_addresses: bool = False  # Bound to every address of the machine: which they are is not known.
    token: str | None = field(default=None, repr=False)

    def knows_host(self, host: str | None) -> bool:
        """Say whether a Host header names this server."""
        name = _name_in(f"//{host}" if host else "")
        return name is not None and (name in self.names or (self.takes_addresses and _is_address(name)))

    def knows_origin(self, origin: str | None, host: str | None) -> bool:
        """Say whether a page of this server sent the request: browsers tell where a POST comes from."""
        if origin is None or not origin.startswith(("http://", "https://")):
            return False
        return self.knows_host(host) and origin.partition("://")[2].lower() == (host or "").lower()

    def opens_to(self, token: str) -> bool:
        """Say whether this is the token."""
        given = token.encode("utf-8", "replace")  # JSON may hold halves of characters, which no token has.
        return self.token is not None and hmac.compare_digest(given, self.token.encode())


def names_for(host: str, others: Iterable[str] = ()) -> frozenset[str]:
    """The names of a server that is bound to a host."""
    loopback = LOOPBACK_NAMES if is_loopback(host) or is_everywhere(host) else ()
    own = () if is_everywhere(host) else (host,)
    return frozenset(name.lower().strip("[]") for name in (*loopback, *own, *others))


def is_loopback(host: str) -> bool:
    """Say whether nobody but this machine can reach a server there."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_everywhere(host: str) -> bool:
    """Say whether a server is bound to every address of the machine."""
    return host.strip("[]") in _UNSPECIFIED


def shown_host(host: str) -> str:
    """A host as a URL has it."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _name_in(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        is_more = parts.path or parts.query or parts.fragment or parts.username is not None or parts.port == 0
    except ValueError:  # No port, or no address.
        return None
    return None if is_more or not parts.hostname else parts.hostname.lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
