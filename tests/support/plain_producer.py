"""A service as it might have been for years: pika, confirms, an exchange and a key per message, and no idea of delays.

python -m tests.support.plain_producer URL PUBLISHERS EXCHANGE...: publishes to the exchanges in turn until its input ends;
then tells what the broker has confirmed, one line of id, time sent and time confirmed (milliseconds) each.
"""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pika

_PACE_S = 0.002  # Between messages of a publisher: a service, not a benchmark.


def produce(url: str, name: str, exchanges: list[str], is_over: threading.Event, confirmed: list[str]) -> None:
    """Publish until it is over; one that no queue takes raises."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    number = 0
    while not is_over.wait(_PACE_S):
        exchange = exchanges[number % len(exchanges)]
        message = {"id": f"{name}-{number}", "at": time.time_ns() // 1_000_000}
        properties = pika.BasicProperties(delivery_mode=2, headers={"kind": "order"})
        channel.basic_publish(exchange, f"{exchange}.created", json.dumps(message).encode(), properties, mandatory=True)
        confirmed.append(f"{message['id']} {message['at']} {time.time_ns() // 1_000_000}")
        number += 1
    connection.close()


def main(url: str, publishers: str, *exchanges: str) -> None:
    """Run the publishers until the input ends; fails where one of them did."""
    is_over, confirmed = threading.Event(), list[str]()
    with ThreadPoolExecutor() as pool:
        running = [
            pool.submit(produce, url, str(number), list(exchanges), is_over, confirmed)
            for number in range(int(publishers))
        ]
        sys.stdin.read()
        is_over.set()
        for publisher in running:
            publisher.result()
    print("\n".join(confirmed))


if __name__ == "__main__":
    main(*sys.argv[1:])
