"""RabbitMQ as a stage, simulated or real: what is the same of both. A group is a queue, a topic is a routing key."""

from collections.abc import Callable, Sequence

from delayctl.consumers.message import Message
from delayctl.consumers.outcome import DONE, RETRY, Outcome, Park, Retry
from delayctl.publishers.contract import LEVEL
from delayctl.publishers.publisher import DelayPublisher

from tests.conformance.books import Books
from tests.conformance.stage import Answer, Attempt, Group, RetryAt, Sent

CONFIRMED_WITHIN = 30


class Script:
    """A stage's topology, and what its clients say and see."""

    def __init__(self, groups: Sequence[Group], levels_ms: Sequence[int], now_ms: Callable[[], int]) -> None:
        self.books = Books(groups)
        self._names = [f"{ms}ms" for ms in levels_ms]
        self._longest_ms = max(levels_ms)
        self._now_ms = now_ms
        self.accidents: dict[str, Callable[[], object]] = {}  # By body: what happens once before the handler answers.

    def topology(self, max_length: int | None) -> str:
        """The file: one queue per group, bound to its topic, with retries through the levels in their order."""
        topics: dict[str, list[str]] = {}
        for group in self.books.groups.values():
            topics.setdefault(group.topic, []).append(group.name)
        routes = [f"  - {{key: {topic}, delay: {self._names[0]}, to: {names}}}" for topic, names in topics.items()]
        levels = " ".join(self._names)
        retries = [
            f"  {group.name}: {{levels: {levels}, max: {group.max_retries}, park: {dead_letter_queue(group.name)}}}"
            for group in self.books.groups.values()
        ]
        limit = f", queue: {{max_length: {max_length}}}" if max_length else ""
        return "\n".join(
            ["version: 1", f"delay: {{levels: {levels}{limit}}}", "routes:", *routes, "retry:", *retries, ""]
        )

    def level_queues(self) -> list[str]:
        """Where messages wait."""
        return [f"delay.{name}.queue" for name in self._names]

    def send(self, publisher: DelayPublisher, topic: str, body: str, level: int) -> Sent:
        """Publish as a service does; a publisher that rounds down makes the longest level of what is longer."""
        self.books.sent(topic)
        before = self._now_ms()
        if level == 0:
            delivery = publisher.publish(body, key=topic)
        elif level <= len(self._names):
            delivery = publisher.publish(body, key=topic, level=self._names[level - 1])
        else:
            delivery = publisher.publish(body, key=topic, delay=f"{self._longest_ms + 1}ms")
        return Sent(delivery.result(CONFIRMED_WITHIN), before)

    def handler(self, group: str) -> Callable[[Message], Outcome]:
        """The handler of a group's queue."""

        def handle(message: Message) -> Outcome:
            answer = self.books.handle(self._attempt(group, message))
            self.accidents.pop(message.text, lambda: None)()
            match answer:
                case Answer.DONE:
                    return DONE
                case Answer.RETRY:
                    return RETRY
                case Answer.PARK:
                    return Park("no use")
                case RetryAt(level):
                    return Retry(level=self._names[level - 1])
                case Answer.RAISE:
                    raise RuntimeError("no luck")

        return handle

    def _attempt(self, group: str, message: Message) -> Attempt:
        level = message.headers.get(LEVEL)
        return Attempt(
            self._now_ms(),
            group,
            message.key,
            message.text,
            message.message_id or "",
            message.attempt,
            self._names.index(str(level)) + 1 if level else 0,
        )


def dead_letter_queue(group: str) -> str:
    """Where a group's messages are given up."""
    return f"{group}.dlq"
