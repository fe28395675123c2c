"""The leash of a Java client: commands out, answers and deliveries in, one JSON value per line."""

import itertools
import json
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed import wait
from testbed.rocketmq import BROKER_NAME, RocketMq

PROGRAM = Path(__file__).with_name("RocketDriver.java")
ANSWERED_WITHIN = 60.0
CREATED_WITHIN = 30.0
STOPPED_WITHIN = 20.0
# How often clients ask who shares a group's queues: every 20 s by default, which a test would spend waiting.
QUICK = ("-Drocketmq.client.rebalance.waitInterval=200", "-Drocketmq.client.rebalance.minInterval=200")


class RefusedByRocketMq(Exception):
    """The client or the broker raised an error for a command."""


@dataclass(frozen=True)
class Delivery:
    """Messages as a listener was given them, when, and from which topic they were pulled."""

    time: int
    group: str
    pulled_from: str
    messages: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Verdict:
    """What a listener answers: a status of RocketMQ's, None, or "throw"; and what it may set in the context."""

    status: str | None = "CONSUME_SUCCESS"
    context: Mapping[str, int] = field(default_factory=dict)


Listener = Callable[[Delivery], Verdict]


class Driver:
    """A running client program."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Any]] = {}
        self._listeners: dict[str, Listener] = {}
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, name="rocketmq driver", daemon=True)
        self._reader.start()

    def create(self, topic: str, *, queues: int = 1) -> None:
        """Create a topic; a broker that has just booted may take longer to do so than a client waits."""
        refusals: list[RefusedByRocketMq] = []

        def is_created() -> bool:
            try:
                self._ask("create", topic=topic, queues=queues)
            except RefusedByRocketMq as error:
                refusals.append(error)
                return False
            return True

        try:
            wait.until(is_created, CREATED_WITHIN, what=f"topic {topic}")
        except TimeoutError as error:
            raise refusals[-1] from error

    def send(self, topic: str, body: str, properties: Mapping[str, object]) -> Mapping[str, Any]:
        """Send a message to a topic's first queue; properties are RocketMQ's own (`DELAY`) or the user's."""
        texts = {name: str(value) for name, value in properties.items()}
        sent: Mapping[str, Any] = self._ask("send", topic=topic, body=body, queue=0, properties=texts)
        return sent

    def subscribe(
        self,
        group: str,
        topic: str,
        listener: Listener,
        *,
        max_reconsume_times: int = -1,
        batch: int = 1,
        threads: int = 8,
        model: str = "CLUSTERING",
        orderly: bool = False,
        suspend_ms: int = 1000,
    ) -> None:
        """Start a push consumer whose listener is a function here."""
        self._listeners[group] = listener
        options = {"max": max_reconsume_times, "batch": batch, "threads": threads, "model": model}
        self._ask("subscribe", group=group, topic=topic, instance=group, orderly=orderly, suspend=suspend_ms, **options)

    def unsubscribe(self, group: str) -> None:
        """Stop a consumer; its offsets are saved."""
        self._ask("unsubscribe", group=group)

    def read(self, topic: str, *, queues: int = 1) -> list[Mapping[str, Any]]:
        """Return all that a topic holds, consumed or not."""
        found: list[Mapping[str, Any]] = self._ask("read", topic=topic, queues=queues)
        return found

    def close(self) -> None:
        """Let go of the leash, which ends the program."""
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.close()
        try:
            self._process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, what: str, **arguments: object) -> Any:
        number = next(self._numbers)
        answer: Future[Any] = Future()
        self._asked[number] = answer
        self._write({"id": number, "do": what, **arguments})
        return answer.result(ANSWERED_WITHIN)

    def _write(self, command: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            if not self._process.stdin.closed:  # What is delivered while the program is told to end needs no answer.
                self._process.stdin.write(json.dumps(command) + "\n")
                self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # Libraries greet on standard output now and then.
                self._take(json.loads(line))
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(RefusedByRocketMq("the client program ended"))

    def _take(self, event: Mapping[str, Any]) -> None:
        if "delivery" in event:
            delivery = Delivery(event["time"], event["group"], event["from"], tuple(event["messages"]))
            verdict = self._listeners[delivery.group](delivery)
            self._write({"do": "outcome", "delivery": event["delivery"], "status": verdict.status, **verdict.context})
        elif "error" in event:
            self._asked.pop(event["id"]).set_exception(RefusedByRocketMq(event["error"]))
        else:
            self._asked.pop(event["id"]).set_result(event["result"])


@contextmanager
def driver(running: RocketMq) -> Iterator[Driver]:
    """Run the client program against a RocketMQ until the block ends."""
    with tempfile.TemporaryDirectory(prefix="delayctl-driver-") as home, open(Path(home) / "errors.log", "w") as errors:
        own = ["-Xmx256m", f"-Duser.home={home}", *QUICK, "-cp", running.classpath]
        process = subprocess.Popen(
            ["java", *own, str(PROGRAM), running.name_server, BROKER_NAME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
        client = Driver(process)
        try:
            yield client
        finally:
            client.close()
