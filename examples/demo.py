"""The main job on a real RabbitMQ: apply a topology, publish, watch the message arrive after its delay, clean up."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pika
import urllib3
from delayctl.cli.main import main as delayctl

TOPOLOGY = str(Path(__file__).with_name("topology.yaml"))
VHOST = "delayctl-demo"  # Of its own, so that nothing on your broker is touched.
QUEUE = "orders.timeout.queue"
PATIENCE_S = 30


def demo(url: str, management_url: str) -> int:
    """Run the demo on the broker at these URLs."""
    with own_vhost(url, management_url):
        say("delayctl apply examples/topology.yaml --yes")
        if delayctl(["apply", TOPOLOGY, "--yes", "--vhost", VHOST]) != 0:
            return 1
        arrived = publish_and_watch(f"{url.rstrip('/')}/{VHOST}")
        say("delayctl destroy examples/topology.yaml --yes")
        code = delayctl(["destroy", TOPOLOGY, "--yes", "--vhost", VHOST])
    return code if arrived else 1


@contextmanager
def own_vhost(url: str, management_url: str) -> Iterator[None]:
    """A virtual host for the demo alone, gone afterwards with all that is in it."""
    login = urlsplit(url).netloc.rpartition("@")[0] or "guest:guest"
    headers = urllib3.make_headers(basic_auth=unquote(login))
    with urllib3.PoolManager(timeout=10, retries=False) as pool:

        def call(method: str) -> int:
            return pool.request(method, f"{management_url}/api/vhosts/{VHOST}", headers=headers).status

        if (status := call("PUT")) >= 300:
            sys.exit(
                f"Error: the virtual host {VHOST} can't be made (HTTP {status})\n  fix: run the demo as an administrator"
            )
        try:
            yield
        finally:
            call("DELETE")


def publish_and_watch(url: str) -> bool:
    """Publish one order and wait until it comes out of the delay."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    say("publish to orders.exchange, as the service always did:")
    sent = time.monotonic()
    properties = pika.BasicProperties(message_id="order-4711", delivery_mode=2)
    channel.basic_publish("orders.exchange", "order.created", b"order 4711", properties, mandatory=True)
    print(f"{now()}  sent      order 4711 with key order.created; it waits 3s in delay.3s.queue", flush=True)
    for method, _, body in channel.consume(QUEUE, inactivity_timeout=PATIENCE_S):
        if method is None or body is None:
            print(f"nothing arrived in {QUEUE} within {PATIENCE_S}s", file=sys.stderr)
            break
        waited = time.monotonic() - sent
        print(f"{now()}  received  {body.decode()} from {QUEUE} with key {method.routing_key}, after {waited:.3f}s")
        channel.basic_ack(method.delivery_tag or 0)
        connection.close()
        return waited >= 3 and method.routing_key == "order.created"
    connection.close()
    return False


def now() -> str:
    """The time of day, to the millisecond."""
    return datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]


def say(what: str) -> None:
    """Print a step of the demo."""
    print(f"\n$ {what}", flush=True)


if __name__ == "__main__":
    sys.exit(demo(os.environ["DELAYCTL_URL"], os.environ["DELAYCTL_MANAGEMENT_URL"]))
