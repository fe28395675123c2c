"""Topologies that share a virtual host, and policies of others, on a real broker."""

from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

SHARED = """
version: 1
prefix: {prefix}
delay: {{levels: [1s]}}
exchanges: {{orders.exchange: {{type: topic}}}}
queues: {{audit.queue: {{}}, {prefix}orders.queue: {{}}}}
routes:
  - {{from: orders.exchange, key: "#", to: audit.queue}}
  - {{from: orders.exchange, key: {prefix}order, delay: 1s, to: {prefix}orders.queue}}
"""
LIVE = """
version: 1
delay: {levels: [5m]}
exchanges: {site.exchange: {type: topic, existing: true}}
queues: {mails.queue: {existing: true}}
routes:
  - {from: site.exchange, key: user.created, delay: 5m, to: mails.queue, replaces: true}
"""


def test_what_two_topologies_share_goes_with_the_last(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Each has it in its record; the first that goes leaves it to the other."""
    one, other = SHARED.format(prefix="a."), SHARED.format(prefix="b.")
    assert (rabbit.apply_text(one).code, rabbit.apply_text(other).code) == (0, 0)

    destroyed = rabbit.delayctl("destroy", topology.write(one), "--yes")

    assert destroyed.code == 0, destroyed.err
    assert "the topology with the prefix 'b.' was applied with them, too" in destroyed.out
    rabbit.publish("orders.exchange", "b.order", "x")
    rabbit.await_ready("audit.queue", 1)
    rabbit.await_ready("b.orders.queue", 1)
    assert rabbit.plan_text(other, "--detailed-exitcode").code == 0
    rabbit.take("audit.queue")
    rabbit.take("b.orders.queue")
    assert rabbit.delayctl("destroy", topology.write(other), "--yes").code == 0
    assert rabbit.api("GET", "queues/{vhost}") == []


def test_nothing_is_led_into_a_delay_that_a_policy_hastens(rabbit: Rabbit) -> None:
    """The direct way stays until the policy is gone; then the delay takes its place."""
    with rabbit.channel() as channel:
        channel.exchange_declare("site.exchange", "topic", durable=True)
        channel.queue_declare("mails.queue", durable=True)
        channel.queue_bind("mails.queue", "site.exchange", "user.created")
    rabbit.put_policy("hasty", "^delay", message_ttl=1_500)

    held = rabbit.apply_text(LIVE)
    rabbit.publish("site.exchange", "user.created", "x")
    rabbit.await_ready("mails.queue", 1)
    rabbit.api("DELETE", "policies/{vhost}/hasty")
    mended = rabbit.apply_text(LIVE)

    assert held.code == 3
    assert "delay.5m.queue is not as it should be" in held.out
    assert mended.code == 0
    assert "site.exchange [user.created]: mails.queue ⇒ delay.5m.exchange" in mended.out
