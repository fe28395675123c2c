"""The processes of the lateness measurement: publishers that keep a pace, and a consumer that notes how late each message is."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message
from delayctl.publishers.contract import DUE
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.parse import read_spec

from benchmarks.vhost import understand

QUEUE, KEY = "orders.queue", "order.created"
BODY = b"x" * 200


def topology(wait_s: int, *, lazy: bool = False) -> str:
    """One level of so many seconds."""
    queue = ", queue: {lazy: true}" if lazy else ""
    return f"version: 1\ndelay: {{levels: [{wait_s}s]{queue}}}\nroutes:\n  - {{key: {KEY}, delay: {wait_s}s, to: {QUEUE}}}\n"


def paced(count: int, rate: int, publish: Callable[[], object]) -> None:
    """Publish at an even pace, as far as the client can keep it."""
    started = time.perf_counter()
    for number in range(count):
        ahead = started + number / rate - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        publish()


def publish_ours(url: str, wait_s: int, rate: int, count: int) -> None:
    """Into the level."""
    with DelayPublisher(url, topology=understand(topology(wait_s))) as publisher:
        paced(count, rate, lambda: publisher.publish(BODY, key=KEY, delay=f"{wait_s}s"))


def consume_ours(url: str, answer: str, wait_s: int, count: int) -> None:
    """Note the lateness of so many messages, in milliseconds."""
    found: list[float] = []
    done = threading.Event()

    def handle(message: Message) -> None:
        found.append(time.time_ns() / 1e6 - message.headers[DUE])
        if len(found) >= count:
            done.set()

    consumer = DelayConsumer(url, topology=read_spec(topology(wait_s), {}, file="bench"))
    consumer.handle(QUEUE, handle)
    thread = threading.Thread(target=consumer.run)
    thread.start()
    done.wait()
    consumer.stop()
    thread.join()
    Path(answer).write_text(json.dumps(found[:count]), encoding="utf-8")


def publish_celery(wait_s: int, rate: int, count: int) -> None:
    """With a countdown."""
    from benchmarks.celery_app import note  # noqa: PLC0415

    paced(count, rate, lambda: note.apply_async((BODY.decode(), time.time() + wait_s), countdown=wait_s))


def publish_dramatiq(wait_s: int, rate: int, count: int) -> None:
    """With a delay."""
    from benchmarks.dramatiq_app import note  # noqa: PLC0415

    paced(count, rate, lambda: note.send_with_options(args=(BODY.decode(), time.time() + wait_s), delay=wait_s * 1000))


def main() -> None:
    """One of these, as the command line says; the URL and the place of the answer are in the environment."""
    role, *numbers = sys.argv[1:]
    url, answer, figures = os.environ["BENCH_URL"], os.environ["BENCH_ANSWER"], [int(number) for number in numbers]
    match role:
        case "publish":
            publish_ours(url, *figures)
        case "consume":
            consume_ours(url, answer, *figures)
        case "celery":
            publish_celery(*figures)
        case "dramatiq":
            publish_dramatiq(*figures)


if __name__ == "__main__":
    main()
