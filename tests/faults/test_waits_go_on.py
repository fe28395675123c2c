"""A broker that is away does not stop the time: what simulate assumes with --away."""

import time

import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.faults.killable import Killable
from tests.support.rabbit import Rabbit

WAIT_S = 20
SOON_S = 5
TOPOLOGY = f"""
version: 1
delay:
  levels:
    classic: {{ttl: {WAIT_S}s}}
    quorum: {{ttl: {WAIT_S}s, type: quorum}}
routes:
  - {{key: via.classic, delay: classic, to: target}}
  - {{key: via.quorum, delay: quorum, to: target}}
"""


@pytest.fixture
def applied(killable: Killable, mortal: Rabbit, topology: TopologyFile) -> Rabbit:
    """Waits of both types, on a broker that was stopped in peace since: a quorum queue that is killed in its first seconds may not come back."""
    assert mortal.delayctl("apply", topology.write(TOPOLOGY), "--yes").code == 0
    killable.rabbitmqctl("stop_app")
    killable.rabbitmqctl("start_app")
    until(lambda: mortal.queue("delay.quorum.queue").get("messages") == 0, 60, what="the quorum queue")
    return mortal


def test_a_wait_goes_on_while_the_broker_is_away(killable: Killable, applied: Rabbit) -> None:
    """A message comes out at its time, or when the broker is back, and not a whole wait after that."""
    published = time.monotonic()
    for kind in ("classic", "quorum"):
        applied.publish(f"delay.{kind}.exchange", f"via.{kind}", kind)

    killable.kill()
    killable.start()
    back = time.monotonic() - published
    until(lambda: applied.ready("target") == 2, WAIT_S + 60, what="both messages")
    out = time.monotonic() - published

    assert sorted(message.body for message in applied.take("target")) == ["classic", "quorum"]
    assert WAIT_S <= out <= max(WAIT_S, back) + SOON_S
