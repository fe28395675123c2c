"""Asking a broker whether it is really there: one management call and one AMQP handshake."""

import base64
import json
import socket
import urllib.request
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from testbed.broker import RunningBroker

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
METHOD_FRAME = b"\x01"


def answers(how: str, *, url: str, management_url: str, timeout: float = 2.0) -> RunningBroker | None:
    """Return the broker behind these addresses, or None while it does not answer."""
    try:
        version = str(get(management_url, "/api/overview", url=url, timeout=timeout)["rabbitmq_version"])
        _shake_hands(urlsplit(url), timeout=timeout)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return RunningBroker(how=how.format(version=version), version=version, url=url, management_url=management_url)


def get(management_url: str, path: str, *, url: str, timeout: float = 5.0) -> Any:
    """Read one management resource with the credentials of the AMQP address."""
    address = urlsplit(management_url)
    host = address.netloc.rpartition("@")[2]
    # A password in the management address is for that address; else both share one.
    token = _credentials(address if address.username else urlsplit(url))
    if address.scheme not in ("http", "https"):
        raise ValueError(f"{management_url} is no management address: it must start with http:// or https://")
    request = urllib.request.Request(f"{address.scheme}://{host}{address.path.rstrip('/')}{path}")  # noqa: S310
    request.add_header("Authorization", f"Basic {token}")
    # The broker is on this machine or named by the user: a proxy of the environment is never meant.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=timeout) as answer:
        return json.load(answer)


def _credentials(address: SplitResult) -> str:
    user, password = unquote(address.username or "guest"), unquote(address.password or "guest")
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def _shake_hands(address: SplitResult, *, timeout: float) -> None:
    # Management is up before the AMQP listener: only connection.start says that clients are served.
    if address.scheme == "amqps":
        return
    with socket.create_connection((address.hostname or "127.0.0.1", address.port or 5672), timeout=timeout) as link:
        link.sendall(PROTOCOL_HEADER)
        if link.recv(1) != METHOD_FRAME:
            raise ValueError("no AMQP 0-9-1 on this port")
