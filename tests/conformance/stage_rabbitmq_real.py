"""A real RabbitMQ as a stage, with DelayPublisher and DelayConsumer as its clients and short levels."""

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from delayctl.consumers.consumer import DelayConsumer
from delayctl.publishers.publisher import DelayPublisher

from testbed import RunningBroker
from testbed.wait import until
from tests.conformance.stage import Ability, Attempt, DeadLetter, Group, Sent
from tests.conformance.stage_rabbitmq import Script, dead_letter_queue
from tests.conftest import fresh_vhost
from tests.faults.killable import Killable
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy

# The first three and the last are far apart, so that a busy machine can't confuse them.
LEVELS_MS = (50, 250, 450, *range(21, 105, 6), 700)
REST_WITHIN = 60.0


class RealRabbitMq:
    """A broker that may be shared: each stage has a virtual host of its own."""

    levels_ms = LEVELS_MS
    late_ms = 2_000  # What a busy machine may add.

    def __init__(self, broker: RunningBroker, *, mortal: Killable | None = None) -> None:
        self.name = f"RabbitMQ {broker.version}"
        self.can = frozenset({Ability.BOUNDED_LEVELS} | ({Ability.RESTART} if mortal else set()))
        self._broker, self._mortal = broker, mortal

    @contextmanager
    def open(self, *groups: Group, max_length: int | None = None) -> Iterator["RealRabbitMqStage"]:
        """A fresh virtual host."""
        script = Script(groups, self.levels_ms, _now_ms)
        with fresh_vhost(self._broker) as rabbit, tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "topology.yaml"
            file.write_text(script.topology(max_length), encoding="utf-8")
            applied = rabbit.delayctl("apply", str(file), "--yes")
            assert applied.code == 0, applied.err
            with TcpProxy(urlsplit(rabbit.url).netloc.rpartition("@")[2]) as proxy:
                stage = RealRabbitMqStage(rabbit, script, proxy, self._mortal)
                with stage.at_work(file):
                    yield stage


class RealRabbitMqStage:
    """One virtual host, its publisher and its consumer."""

    def __init__(self, rabbit: Rabbit, script: Script, proxy: TcpProxy, mortal: Killable | None) -> None:
        self._rabbit, self._script, self._proxy, self._mortal = rabbit, script, proxy, mortal
        self._publisher: DelayPublisher

    @contextmanager
    def at_work(self, file: Path) -> Iterator[None]:
        """Connect, and consume until the block ends; what the consumer has begun by then is finished."""
        url = urlsplit(self._rabbit.url)
        login = url.netloc.rpartition("@")[0]
        proxied = url._replace(netloc=f"{login}@127.0.0.1:{self._proxy.port}").geturl()
        consumer = DelayConsumer(proxied, topology=file, workers=1)
        for group in self._script.books.groups:
            consumer.handle(group, self._script.handler(group))
        thread = threading.Thread(target=consumer.run)
        thread.start()
        try:
            until(self._is_consumed, REST_WITHIN, what="consumers", every=0.02)
            with DelayPublisher(self._rabbit.url, topology=file, rounding="down") as self._publisher:
                yield
        finally:
            consumer.stop()
            thread.join()

    def _is_consumed(self) -> bool:
        with self._rabbit.channel() as channel:
            queues = [channel.queue_declare(group, passive=True).method for group in self._script.books.groups]
        return all(queue.consumer_count for queue in queues)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """What handlers saw."""
        return self._script.books.attempts

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """Publish."""
        return self._script.send(self._publisher, topic, body, level)

    def rest(self) -> None:
        """Wait until all is settled and every queue but those of dead letters is empty."""
        books = self._script.books
        queues = [*self._script.level_queues(), *books.groups]
        with self._rabbit.channel() as channel:

            def ready(queue: str) -> int:
                return int(channel.queue_declare(queue, passive=True).method.message_count)

            until(
                lambda: books.is_settled(lambda group: ready(dead_letter_queue(group))) and not any(map(ready, queues)),
                REST_WITHIN,
                what="rest",
                every=0.02,
            )

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """Take what lies in the parking queue."""
        with self._rabbit.channel() as channel:
            found = list(iter(lambda: channel.basic_get(dead_letter_queue(group), auto_ack=True), (None, None, None)))
        return [
            DeadLetter((body or b"").decode(), str(properties.message_id))
            for _, properties, body in found
            if properties
        ]

    def restart(self) -> None:
        """Kill the broker and start it again."""
        assert self._mortal is not None
        self._mortal.kill()
        self._proxy.cut()  # It does not pass on that the broker is gone.
        self._mortal.start()

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """Cut the connection when the handler has the message and the broker not its word."""
        self._script.accidents[body] = self._proxy.cut
        sent = self.send(topic, body)
        until(lambda: len(self.attempts) == 2, REST_WITHIN, what="the second delivery", every=0.02)
        return sent


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
