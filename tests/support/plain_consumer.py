"""The other end of plain_producer: reads queues that are there, and knows nothing of who binds them or why.

python -m tests.support.plain_consumer URL FILE QUEUE...: writes a line for each message: id, time sent, time
received, and "waited" or "direct" as the broker's own headers tell.
"""

import json
import sys
import time
from typing import TextIO

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic, BasicProperties


def consume(url: str, file: TextIO, queues: tuple[str, ...]) -> None:
    """Read the queues for ever."""

    def on_message(channel: BlockingChannel, method: Basic.Deliver, seen: BasicProperties, body: bytes) -> None:
        message, way = json.loads(body), "waited" if "x-death" in (seen.headers or {}) else "direct"
        file.write(f"{message['id']} {message['at']} {time.time_ns() // 1_000_000} {way}\n")
        file.flush()
        channel.basic_ack(int(method.delivery_tag or 0))

    channel = pika.BlockingConnection(pika.URLParameters(url)).channel()
    channel.basic_qos(prefetch_count=100)
    for queue in queues:
        channel.basic_consume(queue, on_message)
    channel.start_consuming()


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as written:
        consume(sys.argv[1], written, tuple(sys.argv[3:]))
