"""With the printed rights a user does its role's work on a live broker, and is refused everything else."""

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pika
import pika.exceptions
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl
from tests.support.consuming import Seen, raise_, running
from tests.support.rabbit import Rabbit

FILE = """version: 1
delay: {levels: {200ms: {}, 400ms: {shards: 2}}}
exchanges:
  orders.exchange: {type: topic}
  legacy.exchange: {existing: true}
queues:
  legacy.queue: {existing: true}
  failed.queue: {arguments: {x-dead-letter-exchange: orders.exchange}}
routes:
  - {from: orders.exchange, key: order.created, delay: 200ms, to: orders.queue}
  - {from: legacy.exchange, key: "old.#", delay: 400ms, to: legacy.queue}
  - {key: bill.sent, delay: 200ms, to: billing.queue}
retry:
  orders.queue: {levels: [200ms], max: 2, park: orders.parked}
permissions:
  PUBLISHER: publisher
  CONSUMER: {role: consumer, queues: [orders.queue]}
  OPERATOR: operator
"""
ENTRANCES = ("delay.200ms.exchange", "delay.400ms.exchange")
OTHER_WAYS = ("delay.unrouted.exchange", "other.exchange", "amq.topic", "")
EXCHANGES = ("delay.exchange", "orders.exchange", "legacy.exchange", "other.exchange", *ENTRANCES)
QUEUES = ("orders.queue", "billing.queue", "legacy.queue", "other.queue", "orders.parked", "delay.200ms.queue")


@dataclass(frozen=True)
class User:
    """Somebody who is not an administrator."""

    rabbit: Rabbit
    name: str
    password: str

    @property
    def url(self) -> str:
        """The broker's URL with this user's login."""
        return f"amqp://{self.name}:{self.password}@{self.rabbit.broker.url.rpartition('@')[2].rstrip('/')}/"

    def delayctl(self, *arguments: str) -> Ran:
        """Run a command as this user; the password is never shown."""
        address = ("--url", self.url, "--management-url", self.rabbit.broker.management_url)
        ran = delayctl(*arguments, *address, "--vhost", self.rabbit.vhost)
        assert self.password not in ran.out + ran.err
        return ran

    @contextmanager
    def channel(self) -> Iterator[BlockingChannel]:
        """A channel with confirms."""
        connection = pika.BlockingConnection(pika.URLParameters(self.url + quote(self.rabbit.vhost, safe="")))
        try:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel
        finally:
            if connection.is_open:
                connection.close()

    def is_refused(self, method: str, *arguments: Any, **options: Any) -> bool:
        """Say whether the broker closes the channel with 403 when this method of it is called."""
        with self.channel() as channel:
            try:
                getattr(channel, method)(*arguments, **options)
            except pika.exceptions.ChannelClosedByBroker as error:
                if error.reply_code != 403:
                    raise
                return True
        return False

    def publish(self, exchange: str, key: str, body: str = "x") -> None:
        """Publish a mandatory, persistent message and wait for the confirm."""
        with self.channel() as channel:
            publish(channel, exchange, key, body)

    def may_publish(self, exchange: str, key: str) -> bool:
        """Say whether the broker lets this user publish, routable or not."""
        return not self.is_refused("basic_publish", exchange, key, b"x")


def publish(channel: BlockingChannel, exchange: str, key: str, body: str) -> None:
    """A mandatory, persistent message; raises where it is returned or nacked."""
    channel.basic_publish(exchange, key, body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)


@pytest.fixture
def users(rabbit: Rabbit) -> Iterator[Callable[..., User]]:
    """Makes users without any right, and removes them at the end."""
    made: list[User] = []

    def make(role: str, tags: str = "") -> User:
        user = User(rabbit, f"{role}-{rabbit.vhost}", secrets.token_hex(12))
        rabbit.api("PUT", f"users/{user.name}", {"password": user.password, "tags": tags})
        made.append(user)
        return user

    yield make
    for user in made:
        rabbit.api("DELETE", f"users/{user.name}")


@pytest.fixture
def file(rabbit: Rabbit, topology: TopologyFile) -> str:
    """The shop, with what it counts on and what it has no business with."""
    with rabbit.channel() as channel:
        for name in ("legacy", "other"):
            channel.exchange_declare(f"{name}.exchange", "topic", durable=True)
            channel.queue_declare(f"{name}.queue", durable=True)
            channel.queue_bind(f"{name}.queue", f"{name}.exchange", "#")
    text = FILE
    for role in ("publisher", "consumer", "operator"):
        text = text.replace(role.upper(), f"{role}-{rabbit.vhost}")
    return topology.write(text)


def grant(rabbit: Rabbit, file: str, user: User) -> None:
    """Do as an administrator does with what is printed."""
    printed = json.loads(rabbit.delayctl("permissions", file, "--user", user.name, "--output", "json").out)
    (rights,) = printed["users"]
    body = {verb: rights[verb] for verb in ("configure", "write", "read")}
    rabbit.api("PUT", f"permissions/{{vhost}}/{user.name}", body)


def assert_makes_and_removes_nothing(user: User) -> None:
    """No declaration, no binding, no deletion, no purge."""
    for name in EXCHANGES:
        assert user.is_refused("exchange_declare", name, "topic", durable=True), name
        assert user.is_refused("exchange_delete", name), name
        assert user.is_refused("queue_bind", "orders.queue", name, "#"), name
        assert user.is_refused("exchange_bind", "orders.exchange", name, "#"), name
        assert user.is_refused("exchange_bind", ENTRANCES[0], name, "#"), name
    for name in QUEUES:
        assert user.is_refused("queue_declare", name, durable=True), name
        assert user.is_refused("queue_delete", name), name
        assert user.is_refused("queue_bind", name, "delay.exchange", "#"), name
    assert user.is_refused("queue_declare", "new.queue")
    assert user.is_refused("queue_declare", "", exclusive=True)
    assert user.is_refused("exchange_declare", "new.exchange")


def test_a_publisher(rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
    """Publishes to entrances and business exchanges, sees that they are there, and nothing else."""
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    publisher = users("publisher")
    grant(rabbit, file, publisher)

    with publisher.channel() as channel:
        for exchange in (*ENTRANCES, "orders.exchange", "legacy.exchange"):
            channel.exchange_declare(exchange, passive=True)
    for entrance in ENTRANCES:
        publisher.publish(entrance, "bill.sent")
    publisher.publish("orders.exchange", "order.created")
    publisher.publish("legacy.exchange", "old.one")
    publisher.publish("delay.exchange", "bill.sent")  # What is due already.

    rabbit.await_ready("billing.queue", 3)
    rabbit.await_ready("orders.queue", 1)
    rabbit.await_ready("legacy.queue", 2)  # Once at once, by a binding of others, and once after the delay.
    for exchange in OTHER_WAYS:
        assert not publisher.may_publish(exchange, "order.created"), exchange
    for queue in QUEUES:
        assert publisher.is_refused("basic_get", queue), queue
        assert publisher.is_refused("basic_consume", queue, print), queue
        assert publisher.is_refused("queue_purge", queue), queue
    assert_makes_and_removes_nothing(publisher)


def test_a_consumer(rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
    """Consumes its queue, retries, parks, and nothing else."""
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    consumer = users("consumer")
    grant(rabbit, file, consumer)
    rabbit.publish("orders.exchange", "order.created", "first")

    with consumer.channel() as channel:
        for queue in ("orders.queue", "orders.parked"):
            channel.queue_declare(queue, passive=True)
        channel.exchange_declare("delay.200ms.exchange", passive=True)
        tag = await_message(channel, "orders.queue")
        publish(channel, "delay.200ms.exchange", "delay.retry.orders.queue", "again")
        channel.basic_ack(tag)
        tag = await_message(channel, "orders.queue")
        publish(channel, "delay.exchange", "delay.park.orders.parked", "parked")
        channel.basic_ack(tag)

    assert [message.body for message in rabbit.take("orders.parked")] == ["parked"]
    assert rabbit.ready("orders.queue") == 0
    for exchange in ("delay.400ms.exchange", "orders.exchange", "legacy.exchange", *OTHER_WAYS):
        assert not consumer.may_publish(exchange, "order.created"), exchange
    for queue in set(QUEUES) - {"orders.queue"}:
        assert consumer.is_refused("basic_get", queue), queue
        assert consumer.is_refused("basic_consume", queue, print), queue
        assert consumer.is_refused("queue_purge", queue), queue
    assert_makes_and_removes_nothing(consumer)


def test_a_delay_consumer_needs_no_more(
    rabbit: Rabbit, file: str, topology: TopologyFile, users: Callable[..., User]
) -> None:
    """As a consumer it retries and parks, and looks whether all is there; a topic permission leaves it that key alone."""
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    consumer = users("consumer")
    grant(rabbit, file, consumer)
    gate = {"exchange": "delay.exchange", "write": r"^delay\.park\.orders\.parked$", "read": "^$"}
    rabbit.api("PUT", f"topic-permissions/{{vhost}}/{consumer.name}", gate)
    seen = Seen(raise_)

    with running(consumer.url + quote(rabbit.vhost, safe=""), topology.path, {"orders.queue": seen}):
        rabbit.publish("orders.exchange", "order.created", "hello")
        rabbit.await_ready("orders.parked", 1)

    assert [message.attempt for message in seen.messages] == [0, 1, 2]
    assert not consumer.may_publish("delay.exchange", "order.created")
    assert rabbit.delayctl("permissions", file, "--check", "--user", consumer.name).code == 0


def await_message(channel: BlockingChannel, queue: str) -> int:
    """Wait for a message and say by which tag it is acknowledged."""
    found: list[int] = []

    def look() -> bool:
        method, _, _ = channel.basic_get(queue)
        if method is not None and method.delivery_tag is not None:
            found.append(method.delivery_tag)
        return bool(found)

    until(look, 20)
    return found[0]


@pytest.mark.parametrize(
    "delay",
    [
        "{levels: {200ms: {}, 400ms: {shards: 2}}, queue: {max_length: 88}}",
        "{levels: {200ms: {}, 400ms: {shards: 2}}, queue: {max_length: 88}, settings: policy}",
        "{levels: {200ms: {}, 400ms: {shards: 2}}, queue: {max_length: 88, profile: safe}}",
    ],
)
def test_an_operator(rabbit: Rabbit, file: str, topology: TopologyFile, users: Callable[..., User], delay: str) -> None:
    """Applies, changes, plans and destroys the topology, and touches nothing outside of it."""
    text = topology.path.read_text().replace("{levels: {200ms: {}, 400ms: {shards: 2}}}", delay)
    topology.write(text)
    operator = users("operator", tags="policymaker")
    grant(rabbit, file, operator)
    before = rabbit.definitions()

    assert operator.delayctl("apply", file, "--yes").code == 0
    assert operator.delayctl("plan", file, "--detailed-exitcode").code == 0
    topology.write(text.replace("max_length: 88", "max_length: 77"))
    assert operator.delayctl("apply", file, "--yes").code == 0
    planned = operator.delayctl("plan", file, "--detailed-exitcode")
    assert (planned.code, planned.out) == (0, f"No changes. The broker matches {file}.\n")

    assert_stays_inside(operator)
    rabbit.publish("orders.exchange", "order.created", "still works")
    rabbit.await_ready("orders.queue", 1)
    assert len(rabbit.take("orders.queue")) == 1
    assert operator.delayctl("destroy", file, "--yes").code == 0
    assert rabbit.definitions() == before


def test_an_operator_over_amqp_alone(
    rabbit: Rabbit, file: str, topology: TopologyFile, users: Callable[..., User]
) -> None:
    """It may look for what it has to look for, and is told where a level has another number of queues."""
    operator = users("operator")
    grant(rabbit, file, operator)

    applied = [operator.delayctl("apply", file, "--yes", "--no-management") for _ in range(2)]
    topology.write(topology.path.read_text().replace("400ms: {shards: 2}", "400ms: {}"))
    grant(rabbit, file, operator)
    joined = operator.delayctl("apply", file, "--yes", "--no-management")

    assert [ran.code for ran in applied] == [0, 0], applied[0].err + applied[1].err
    assert (joined.code, "exchange delay.400ms.spread.exchange is on the broker" in joined.err) == (1, True), joined.err
    rabbit.publish("orders.exchange", "order.created", "works")
    rabbit.await_ready("orders.queue", 1)


def test_an_operator_puts_a_delay_into_a_live_way(
    rabbit: Rabbit, file: str, topology: TopologyFile, users: Callable[..., User]
) -> None:
    """The exchanges that stand between for a moment are among the rights; the way of others is put back in the end."""
    old = '{from: legacy.exchange, key: "old.#", delay: 400ms, to: legacy.queue}'
    new = '{from: legacy.exchange, key: "#", delay: 400ms, to: legacy.queue, replaces: true}'
    topology.write(topology.path.read_text().replace(old, new))
    operator = users("operator", tags="policymaker")
    grant(rabbit, file, operator)
    before = rabbit.definitions()

    applied = operator.delayctl("apply", file, "--yes")
    rabbit.publish("legacy.exchange", "old.key", "waits")
    is_direct = rabbit.ready("legacy.queue")
    rabbit.await_ready("legacy.queue", 1)
    rabbit.take("legacy.queue")

    assert "moved way legacy.exchange [#]: legacy.queue ⇒ delay.400ms.exchange" in applied.out
    assert (applied.code, is_direct) == (0, 0)
    assert operator.delayctl("destroy", file, "--yes").code == 0
    assert rabbit.definitions() == before


def assert_stays_inside(operator: User) -> None:
    """What is not in the file is closed, and so is what is in the business queues."""
    assert operator.is_refused("exchange_declare", "new.exchange")
    assert operator.is_refused("queue_declare", "new.queue")
    assert operator.is_refused("queue_declare", "delay.500ms.queue")
    for name in ("other", "legacy"):
        assert operator.is_refused("queue_delete", f"{name}.queue"), name
        assert operator.is_refused("exchange_delete", f"{name}.exchange"), name
        assert operator.is_refused("queue_purge", f"{name}.queue"), name
        assert operator.is_refused("basic_get", f"{name}.queue"), name
    assert operator.is_refused("queue_bind", "other.queue", "delay.exchange", "#")
    assert operator.is_refused("queue_bind", "orders.queue", "other.exchange", "#")
    for queue in ("orders.queue", "billing.queue", "orders.parked"):
        assert operator.is_refused("basic_get", queue), queue
    for exchange in ("legacy.exchange", "other.exchange", ""):
        assert not operator.may_publish(exchange, "order.created"), exchange


class TestCheckAndApply:
    """What users have, beside what they need."""

    def test_set_for_the_users_of_the_file(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """Looked at, set, looked at again; the tag is reported and left to an administrator."""
        users("publisher"), users("consumer"), users("operator")

        before = rabbit.delayctl("permissions", file, "--check")
        applied = rabbit.delayctl("permissions", file, "--apply", "--yes")
        after = json.loads(rabbit.delayctl("permissions", file, "--check", "--output", "json").out)

        assert before.code == 1
        assert before.out.count("has no rights in this virtual host") == 3
        assert applied.code == 0
        assert "1 user of 3 to mend." in applied.out
        assert "lacks the tag policymaker" in applied.out
        assert [(user["fine"], user["missing_tags"]) for user in after["users"]] == [
            (True, []),
            (True, []),
            (False, ["policymaker"]),
        ]
        rabbit.api("PUT", f"users/operator-{rabbit.vhost}", {"password": secrets.token_hex(9), "tags": "policymaker"})
        assert rabbit.delayctl("permissions", file, "--check").code == 0

    def test_too_much_and_too_little(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """Both are listed by name, and both are mended."""
        consumer = users("consumer")
        rights = {"configure": "", "write": "^delay", "read": ".*"}
        rabbit.api("PUT", f"permissions/{{vhost}}/{consumer.name}", rights)

        ran = rabbit.delayctl("permissions", file, "--check", "--user", consumer.name)
        applied = rabbit.delayctl("permissions", file, "--apply", "--yes", "--user", consumer.name)

        assert ran.code == 1
        assert "lacks write on orders.parked" in ran.out
        assert "read .* also takes" in ran.out
        assert "names that nobody has yet" in ran.out
        assert (applied.code, "Every user has what it needs and no more." in applied.out) == (0, True)
        assert "read: .* → ^orders\\.queue$" in applied.err

    def test_a_topic_permission_says_no(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """A second gate, which looks at keys: what --check says of it is what the broker does."""
        publisher, operator = users("publisher"), users("operator", tags="policymaker")
        assert rabbit.delayctl("apply", file, "--yes").code == 0
        for user in (publisher, operator):
            grant(rabbit, file, user)
        gate = {"exchange": "orders.exchange", "write": "^other", "read": "^other"}
        check = ("permissions", file, "--check", "--user")
        before = [rabbit.delayctl(*check, user.name).code for user in (publisher, operator)]
        for user in (publisher, operator):
            rabbit.api("PUT", f"topic-permissions/{{vhost}}/{user.name}", gate)

        publishes, binds = (rabbit.delayctl(*check, user.name) for user in (publisher, operator))
        (told,) = json.loads(rabbit.delayctl(*check, publisher.name, "--output", "json").out)["users"]

        assert (before, publishes.code, binds.code) == ([0, 0], 1, 1)
        takes = "its topic permission at orders.exchange takes"
        assert f"can't publish order.created: {takes} write ^other only" in publishes.out
        assert f"can't bind order.created: {takes} read ^other only" in binds.out
        assert [(topic["exchange"], topic["keys"]) for topic in told["topics"]] == [
            ("orders.exchange", ["order.created"])
        ]
        assert not publisher.may_publish("orders.exchange", "order.created")
        assert publisher.may_publish("orders.exchange", "other.key")
        binding = ("delay.200ms.exchange", "orders.exchange", "order.created")
        assert operator.is_refused("exchange_bind", *binding)
        rabbit.api("DELETE", f"topic-permissions/{{vhost}}/{operator.name}")
        assert not operator.is_refused("exchange_bind", *binding)

    def test_a_user_that_is_not_there(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """Nobody is created, and nothing is set for the others."""
        publisher = users("publisher")

        ran = rabbit.delayctl("permissions", file, "--apply", "--yes")

        assert ran.code == 1
        assert f"2 users of the file not on the broker: 'consumer-{rabbit.vhost}', 'operator-{rabbit.vhost}'" in ran.err
        assert rabbit.api("GET", f"users/{publisher.name}/permissions") == []

    def test_an_administrator_has_too_much(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """Whoever can give rights has them all."""
        publisher = users("publisher", tags="administrator")
        grant(rabbit, file, publisher)

        ran = rabbit.delayctl("permissions", file, "--check", "--user", publisher.name)

        assert ran.code == 1
        assert "has the tag administrator" in ran.out

    def test_without_an_answer_nothing_is_set(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """There is no terminal to ask on."""
        publisher = users("publisher")

        ran = rabbit.delayctl("permissions", file, "--apply", "--user", publisher.name)

        assert ran.code == 64
        assert "give --yes" in ran.err
        assert rabbit.api("GET", f"users/{publisher.name}/permissions") == []

    def test_only_an_administrator_may_look(self, rabbit: Rabbit, file: str, users: Callable[..., User]) -> None:
        """A policymaker is told whom to ask."""
        operator = users("operator", tags="policymaker")
        grant(rabbit, file, operator)

        ran = operator.delayctl("permissions", file, "--check")

        assert ran.code == 1
        assert "run it as a user with the tag administrator" in ran.err

    def test_a_pattern_that_is_too_long(
        self, rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User]
    ) -> None:
        """Too long for either version: the broker's answer becomes a sentence."""
        consumer = users("consumer")
        targets = ", ".join(secrets.token_hex(100) for _ in range(200))
        file = topology.write(f"version: 1\nroutes: [{{key: k, delay: 1m, to: [{targets}]}}]\n")

        ran = rabbit.delayctl("permissions", file, "--apply", "--yes", "--user", consumer.name, "--role", "consumer")

        assert ran.code == 1
        assert f"bytes for user '{consumer.name}': RabbitMQ 4.3 takes 1,024 at most" in ran.err
        assert "Traceback" not in ran.err


LADDER = """version: 1
delay: {any: {unit: 50ms, steps: 3}}
routes:
  - {key: bill.sent, delay: any, to: billing.queue}
permissions:
  PUBLISHER: publisher
  OPERATOR: operator
"""


def test_the_ladder(rabbit: Rabbit, topology: TopologyFile, users: Callable[..., User]) -> None:
    """An operator makes it; a publisher reaches its door, and no step behind it."""
    text = LADDER
    for role in ("publisher", "operator"):
        text = text.replace(role.upper(), f"{role}-{rabbit.vhost}")
    file = topology.write(text)
    operator, publisher = users("operator", "policymaker"), users("publisher")
    for user in (operator, publisher):
        grant(rabbit, file, user)

    applied = operator.delayctl("apply", file, "--yes")
    published = publisher.delayctl("publish", file, "--key", "bill.sent", "--delay", "350ms", "x")

    assert (applied.code, published.code) == (0, 0), applied.err + published.err
    rabbit.await_ready("billing.queue", 1)
    for exchange in ("delay.any.02.exchange", "delay.any.02.gate.exchange"):
        assert not publisher.may_publish(exchange, "bill.sent"), exchange
