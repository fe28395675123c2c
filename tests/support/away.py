"""A broker that is away at will: what leads to it can be cut."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy


@contextmanager
def away_at_will(rabbit: Rabbit) -> Iterator[tuple[tuple[str, ...], tuple[TcpProxy, TcpProxy]]]:
    """The options that lead to a virtual host, and the two networks that they lead through."""
    url, management = urlsplit(rabbit.broker.url), urlsplit(rabbit.broker.management_url)
    with TcpProxy(f"{url.hostname}:{url.port}") as amqp, TcpProxy(f"{management.hostname}:{management.port}") as http:
        ways = (f"amqp://{url.username}:{url.password}@127.0.0.1:{amqp.port}", f"http://127.0.0.1:{http.port}")
        yield ("--url", ways[0], "--management-url", ways[1], "--vhost", rabbit.vhost), (amqp, http)


def go(network: Iterable[TcpProxy]) -> None:
    """Cut all of it, and let nobody in."""
    for proxy in network:
        proxy.is_down = True
        proxy.cut()


def return_(network: Iterable[TcpProxy]) -> None:
    """Let everybody in again."""
    for proxy in network:
        proxy.is_down = False
