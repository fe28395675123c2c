"""A virtual host of a real RabbitMQ in a test's hands: looks at it and disturbs it as an administrator would."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pika
import pika.exceptions
import urllib3
from pika.adapters.blocking_connection import BlockingChannel

from testbed import RunningBroker
from testbed.wait import until
from tests.support.commands import Ran, delayctl

_RIGHTS = ("configure", "write", "read")
# More than the 45 s that a cluster lets the maker of a virtual host wait until all its nodes have it. A connection that the broker
# ended for being idle is made anew.
_POOL = urllib3.PoolManager(retries=urllib3.Retry(1, connect=0, redirect=False, allowed_methods=None), timeout=60)


@dataclass(frozen=True)
class Message:
    """A message as a consumer sees it."""

    body: str
    key: str
    exchange: str
    headers: dict[str, Any]


@dataclass(frozen=True)
class Rabbit:
    """One virtual host."""

    broker: RunningBroker
    vhost: str

    @property
    def url(self) -> str:
        """The AMQP URL, virtual host included."""
        return f"{self.broker.url.rstrip('/')}/{quote(self.vhost, safe='')}"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that lead delayctl here."""
        return ("--url", self.broker.url, "--management-url", self.broker.management_url, "--vhost", self.vhost)

    def delayctl(self, *arguments: str) -> Ran:
        """Run a command against this virtual host."""
        return delayctl(*arguments, *self.options)

    def apply_text(self, text: str, *options: str) -> Ran:
        """Apply a file with this text."""
        return self._with_text("apply", text, "--yes", *options)

    def plan_text(self, text: str, *options: str) -> Ran:
        """Plan a file with this text."""
        return self._with_text("plan", text, *options)

    def _with_text(self, command: str, text: str, *options: str) -> Ran:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            return self.delayctl(command, file.name, *options)

    def api(self, method: str, path: str, body: Any = None, *, user: str | None = None) -> Any:
        """Call the management API; `{vhost}` in the path is filled in."""
        response = self._request(method, path, body, user=user)
        assert response.status < 300, f"{method} {path}: {response.status} {response.data!r}"
        return json.loads(response.data) if response.data else None

    def _request(self, method: str, path: str, body: Any, *, user: str | None) -> urllib3.BaseHTTPResponse:
        login = user or urlsplit(self.broker.url).netloc.rpartition("@")[0]
        headers = urllib3.make_headers(basic_auth=login) | {"content-type": "application/json"}
        url = f"{self.broker.management_url}/api/{path.format(vhost=quote(self.vhost, safe=''))}"
        return _POOL.request(method, url, headers=headers, body=None if body is None else json.dumps(body).encode())

    def create(self) -> None:
        """Make the virtual host, with all rights.

        A node of a cluster that hears of it too late does not start it by itself (3.10); then the others wait for 45 s,
        answer with an error, and give nobody rights.
        """
        if self._request("PUT", "vhosts/{vhost}", None, user=None).status == 500:
            for node in self.api("GET", "nodes"):
                self.api("POST", f"vhosts/{{vhost}}/start/{node['name']}")
        user = unquote(str(urlsplit(self.broker.url).username))
        self.api("PUT", f"permissions/{{vhost}}/{quote(user, safe='')}", dict.fromkeys(_RIGHTS, ".*"))

    def definitions(self) -> dict[str, Any]:
        """All that is in the virtual host, by kind and in a stable order."""
        found = self.api("GET", "definitions/{vhost}")
        return {
            kind: sorted(json.dumps(item, sort_keys=True) for item in found[kind])
            for kind in ("exchanges", "queues", "bindings", "policies")
        }

    def queue(self, name: str) -> Any:
        """A queue as the management API shows it."""
        return self.api("GET", f"queues/{{vhost}}/{quote(name, safe='')}")

    def await_effective(self, queue: str, expected: dict[str, Any]) -> None:
        """Wait until the management API, which hears of policies late, shows these effective settings."""
        until(lambda: expected.items() <= (self.queue(queue).get("effective_policy_definition") or {}).items(), 15)

    def put_policy(
        self, name: str, pattern: str, *, operator: bool = False, priority: int = 0, **definition: Any
    ) -> None:
        """Set a policy as somebody else would; underscores in names become dashes."""
        body = {
            "pattern": pattern,
            "priority": priority,
            "apply-to": "queues",
            "definition": {key.replace("_", "-"): value for key, value in definition.items()},
        }
        self.api("PUT", f"{'operator-' if operator else ''}policies/{{vhost}}/{name}", body)

    def exchange(self, name: str) -> Any:
        """An exchange as the management API shows it."""
        return self.api("GET", f"exchanges/{{vhost}}/{quote(name, safe='')}")

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        """A channel with confirms."""
        connection = pika.BlockingConnection(pika.URLParameters(self.url))
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel
        finally:
            if connection.is_open:
                connection.close()

    def publish(self, exchange: str, key: str, *bodies: str) -> None:
        """Publish persistent, mandatory messages; raises where one is returned or nacked."""
        with self.channel() as channel:
            for body in bodies:
                channel.basic_publish(
                    exchange, key, body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True
                )

    def take(self, queue: str) -> list[Message]:
        """Take all that a queue holds now."""
        messages: list[Message] = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None or properties is None or body is None:
                    return messages
                messages.append(
                    Message(
                        body.decode(), str(method.routing_key), str(method.exchange), dict(properties.headers or {})
                    )
                )

    def ready(self, queue: str) -> int:
        """How many messages are ready in a queue, as of now."""
        with self.channel() as channel:
            return int(channel.queue_declare(queue, passive=True).method.message_count)

    def await_ready(self, queue: str, count: int, *, deadline: float = 30) -> None:
        """Wait until a queue holds this many messages."""
        until(lambda: self.ready(queue) == count, deadline)
