"""Pictures of a real broker: counts, drift, and what a plan would change."""

import json
from typing import Any

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

FILE = """\
version: 1
delay: {levels: [1h, 2h]}
exchanges: {orders.exchange: {}}
routes:
  - {from: orders.exchange, key: order.created, delay: 1h, to: orders.queue}
"""


def drawn(rabbit: Rabbit, file: str, how: str) -> dict[str, Any]:
    """The cards of a picture by their ids."""
    ran = rabbit.delayctl("graph", file, how, "--format", "json")
    assert ran.code == 0, ran.err
    return {card["id"]: card for card in json.loads(ran.out)["cards"]}


def test_counts_and_drift_are_on_the_live_picture(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Messages that wait, a way that somebody took away and a queue that somebody bound."""
    file = topology.write(FILE)
    rabbit.delayctl("apply", file, "--yes")
    with rabbit.channel() as channel:
        for _ in range(3):
            channel.basic_publish("orders.exchange", "order.created", b"")
        channel.queue_declare("audit.queue", durable=True)
        channel.queue_bind("audit.queue", "delay.exchange", "#")
        channel.queue_unbind("orders.queue", "delay.exchange", "order.created")

    def counted() -> dict[str, Any] | None:
        cards = drawn(rabbit, file, "--live")
        return cards if cards["level 1h"]["messages"] == 3 else None

    cards = until(counted, 60, what="three messages on the picture", every=0.5)

    assert cards is not None
    assert cards["level 2h"]["messages"] == 0
    assert cards["queue audit.queue"]["mark"] == "foreign"
    assert [(row["text"], row["mark"]) for row in cards["queue orders.queue"]["rows"]] == [("order.created", "missing")]


def test_a_plan_shows_what_apply_would_change(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Against the broker as it is."""
    rabbit.delayctl("apply", topology.write(FILE), "--yes")
    changed = topology.write(FILE.replace("[1h, 2h]", "{1h: {max_length: 7}, 3h: {}}"))

    cards = drawn(rabbit, changed, "--plan")

    marks = {card["badge"]: card["mark"] for card in cards.values() if card["badge"]}
    assert marks == {"1h": "replace", "2h": "delete", "3h": "create"}
