"""A real RocketMQ as a stage; it counts in seconds, so its levels are as short as they can be."""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from testbed.rocketmq import RocketMq
from testbed.rocketmq_driver import Delivery, Driver, Verdict
from testbed.wait import until
from tests.conformance.books import Books
from tests.conformance.stage import Ability, Answer, Attempt, DeadLetter, Group, RetryAt, Sent

LEVELS = "1s 2s 3s" + " 1s" * 14 + " 4s"
SCHEDULE_TOPIC, SCHEDULE_QUEUES = "SCHEDULE_TOPIC_XXXX", 18
REST_WITHIN = 120.0


class RealRocketMq:
    """A broker that stages share: each has topics and groups of its own."""

    can = frozenset({Ability.NUMBERED_LEVELS, Ability.RESTART})
    levels_ms = tuple(int(level.removesuffix("s")) * 1000 for level in LEVELS.split())
    late_ms = 100 + 2_000  # It looks every 100 ms; the rest is what a busy machine may add.

    def __init__(self, running: RocketMq, client: Driver) -> None:
        self.name = f"RocketMQ {running.version}"
        self._running, self._client = running, client
        self._numbers = itertools.count(1)

    @contextmanager
    def open(self, *groups: Group, max_length: int | None = None) -> Iterator["RealRocketMqStage"]:
        """Subscribe the groups, under names that nobody used before."""
        assert max_length is None
        stage = RealRocketMqStage(self._running, self._client, groups, f"-{next(self._numbers)}")
        with stage.at_work():
            yield stage


class RealRocketMqStage:
    """Some topics and groups; `suffix` keeps them apart from those of other stages."""

    def __init__(self, running: RocketMq, client: Driver, groups: Sequence[Group], suffix: str) -> None:
        self._running, self._client, self._suffix = running, client, suffix
        self._books = Books(groups)
        self._ids: set[str] = set()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Consume until the block ends."""
        groups = self._books.groups.values()
        for topic in {group.topic for group in groups}:
            self._client.create(topic + self._suffix)
        for group in groups:
            self._subscribe(group)
        yield
        for group in groups:
            self._client.unsubscribe(group.name + self._suffix)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """What listeners saw."""
        return self._books.attempts

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """Send."""
        self._books.sent(topic)
        before = time.time_ns() // 1_000_000
        message_id = str(self._client.send(topic + self._suffix, body, {"DELAY": level})["message_id"])
        self._ids.add(message_id)
        return Sent(message_id, before)

    def rest(self) -> None:
        """Wait until all is settled and nothing waits in a level."""
        until(
            lambda: self._books.is_settled(lambda group: len(self.dead_letters(group))) and not self._waiting(),
            REST_WITHIN,
            what="rest",
            every=0.2,
        )

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """What lies in %DLQ%."""
        found = self._client.read(f"%DLQ%{group}{self._suffix}")
        return [DeadLetter(message["body"], message["message_id"]) for message in found]

    def restart(self) -> None:
        """Kill the broker and start it again."""
        self._running.kill()
        self._running.start()

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """Kill the broker after the delivery and before its offset is written, which is every ten seconds."""
        written = self._running.offsets_written_at()
        until(lambda: self._running.offsets_written_at() != written, 30, what="the file of offsets")
        sent = self.send(topic, body, level=1)
        until(lambda: self.attempts, REST_WITHIN, what="the first delivery")
        self.restart()
        until(lambda: len(self.attempts) == 2, REST_WITHIN, what="the second delivery")
        return sent

    def _waiting(self) -> int:
        """How many messages of ours are in a level and not yet where they belong."""
        scheduled = [each for each in self._client.read(SCHEDULE_TOPIC, queues=SCHEDULE_QUEUES) if self._is_ours(each)]
        targets = {message["properties"]["REAL_TOPIC"] for message in scheduled}
        came = {_key(each, topic) for topic in targets for each in self._client.read(topic) if self._is_ours(each)}
        return sum(_key(message, message["properties"]["REAL_TOPIC"]) not in came for message in scheduled)

    def _is_ours(self, message: Mapping[str, Any]) -> bool:
        return message["message_id"] in self._ids

    def _subscribe(self, group: Group) -> None:
        def listen(delivery: Delivery) -> Verdict:
            (message,) = delivery.messages
            match self._books.handle(self._attempt(group.name, delivery.time, message)):
                case Answer.DONE:
                    return Verdict()
                case Answer.RAISE:
                    return Verdict("throw")
                case RetryAt(level):
                    return Verdict("RECONSUME_LATER", {"level": level})
                case Answer.PARK:
                    return Verdict("RECONSUME_LATER", {"level": -1})
                case Answer.RETRY:
                    return Verdict("RECONSUME_LATER")

        self._client.subscribe(
            group.name + self._suffix,
            group.topic + self._suffix,
            listen,
            max_reconsume_times=group.max_retries,
            threads=1,
        )

    def _attempt(self, group: str, time_ms: int, message: Mapping[str, Any]) -> Attempt:
        return Attempt(
            time_ms,
            group,
            str(message["topic"]).removesuffix(self._suffix),
            message["body"],
            message["message_id"],
            message["reconsume_times"],
            max(int(message["properties"].get("DELAY", "0")), 0),
        )


def _key(message: Mapping[str, Any], topic: str) -> tuple[str, int, str]:
    return message["message_id"], message["reconsume_times"], topic
