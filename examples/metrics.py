"""A service that tells Prometheus how late its messages come: http://127.0.0.1:9726/metrics, until SIGTERM or Ctrl-C."""

import os
from pathlib import Path

from delayctl.consumers import DONE, DelayConsumer, Lateness, Message, Outcome
from prometheus_client import REGISTRY, Counter, start_http_server

TOPOLOGY = Path(__file__).with_name("service.yaml")
PORT = 9726
ORDERS = Counter("shop_orders_cancelled", "Orders that were not paid in time.")  # What a service has anyway.


def handle(message: Message) -> Outcome:
    """Cancel an order that was not paid in time."""
    print(f"cancelled {message.text}", flush=True)
    ORDERS.inc()
    return DONE


def main(url: str, port: int) -> None:
    """Consume, and tell how late."""
    lateness = Lateness()
    REGISTRY.register(lateness)
    server, _ = start_http_server(port, addr="127.0.0.1")
    print(f"http://127.0.0.1:{server.server_port}/metrics", flush=True)
    consumer = DelayConsumer(url, topology=TOPOLOGY)
    consumer.handle("orders.timeout.queue", handle)
    consumer.measure(lateness)
    consumer.run()


if __name__ == "__main__":
    main(
        os.environ.get("DELAYCTL_URL", "amqp://guest:guest@127.0.0.1:5672/"), int(os.environ.get("METRICS_PORT", PORT))
    )
