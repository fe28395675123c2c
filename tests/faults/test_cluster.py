"""Nodes of a cluster are lost while messages wait and expire."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pika.exceptions
import pytest
from delayctl.publishers.errors import Nacked
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.wording import plural

from testbed.members import Cluster, private_cluster
from testbed.needs import needed
from testbed.wait import until
from tests.conftest import TopologyFile, fresh_vhost
from tests.faults.account import Account
from tests.faults.traffic import await_answered, await_confirmed, consuming, publishing
from tests.support.rabbit import Rabbit

AT_LENGTH = "DELAYCTL_FAULTS_KILLS" in os.environ
KILLS = int(os.environ.get("DELAYCTL_FAULTS_KILLS", "1"))
BETWEEN_KILLS = 200
PACE_S = 0.004  # Three nodes share a small machine, and what is asked is whether they lose something.
# A message that a target did not confirm is sent to it again after three minutes, at the latest after two times that.
LATEST_S = 2 * 180 + 60
TOPOLOGY = """
version: 1
delay:
  levels:
    4s: {}
    2s: {type: quorum}
queues:
  orders.queue: {type: quorum}
routes:
  - {key: order.classic, delay: 4s, to: orders.queue}
  - {key: order.quorum, delay: 2s, to: orders.queue}
"""
SAFE = """
version: 1
delay: {levels: [2s], queue: {profile: safe}}
queues: {target: {type: quorum}}
routes: [{key: via.2s, delay: 2s, to: target}]
"""

SPREAD = """
version: 1
delay:
  levels:
    1h: {shards: 3}
    2h: {shards: 3, profile: safe}
queues: {target: {type: quorum}}
routes: [{key: via.1h, delay: 1h, to: target}, {key: via.2h, delay: 2h, to: target}]
"""
MESSAGES = 300


def containers() -> AbstractContextManager[Cluster]:
    """Three containers of the newest RabbitMQ."""
    from testbed.container_members import container_cluster  # noqa: PLC0415 (not installed on every laptop)

    return container_cluster()


WAYS = {"nodes": private_cluster, "containers": containers}
CLUSTERS = sorted(WAYS, reverse=True) if AT_LENGTH else ["nodes"]  # At length, of both ends of the range.


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three nodes of the tests' own."""
    with needed(WAYS[request.param]()) as found:
        yield found


def test_d210_a_classic_wait_is_lost_with_its_node(cluster: Cluster, topology: TopologyFile) -> None:
    """What waits in a replicated queue comes out all the same; the rest, when its node is back."""
    lost, left, _ = cluster.members
    file = topology.write(TOPOLOGY)
    with fresh_vhost(lost.broker) as rabbit:
        applied = rabbit.delayctl("apply", file, "--yes")
        assert applied.code == 0
        assert rabbit.queue("delay.4s.queue")["node"] == lost.name
        survivor = Rabbit(left.broker, rabbit.vhost)
        survivor.publish("delay.4s.exchange", "order.classic", "1")
        survivor.publish("delay.2s.exchange", "order.quorum", "2")
        lost.kill()

        survivor.await_ready("orders.queue", 1)
        assert [message.body for message in survivor.take("orders.queue")] == ["2"]
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match=r"home node .* is down or inaccessible"):
            survivor.ready("delay.4s.queue")
        with pytest.raises(pika.exceptions.UnroutableError):
            survivor.publish("delay.4s.exchange", "order.classic", "3")

        lost.start()
        survivor.await_ready("orders.queue", 1)
        assert [message.body for message in survivor.take("orders.queue")] == ["1"]
        cluster.await_whole()

    assert "Warning D210: messages wait 4s in delay.4s.queue on one node" in applied.out


def test_shards_are_spread_over_the_nodes(cluster: Cluster, topology: TopologyFile) -> None:
    """The plan says where, each node leads one shard of a level, and each shard gets its part of the messages."""
    file, nodes = topology.write(SPREAD), sorted(member.name for member in cluster.members)
    with fresh_vhost(cluster.broker) as rabbit:
        planned = json.loads(rabbit.delayctl("plan", file, "--output", "json").out)
        applied = rabbit.delayctl("apply", file, "--yes")
        assert applied.code == 0, applied.out + applied.err
        with DelayPublisher(cluster.urls(rabbit.vhost), topology=topology.path) as publisher:
            for level in ("1h", "2h"):
                for _ in range(MESSAGES):
                    publisher.publish(b"x", key=f"via.{level}", level=level)
        queues = {level: [f"delay.{level}.{number}.queue" for number in (1, 2, 3)] for level in ("1h", "2h")}
        counts = {level: _await_all(rabbit, names) for level, names in queues.items()}
        leaders = {name: cluster.leader(rabbit.vhost, name).name for names in queues.values() for name in names}
        asked = rabbit.delayctl("doctor", file)

    places = {change["name"]: change["node"] for change in planned["changes"] if "node" in change}
    assert [places[f"delay.1h.{number}.queue"] for number in (1, 2, 3)] == nodes
    assert f"on {nodes[0]})" in applied.out
    assert [sorted(leaders[name] for name in names) for names in queues.values()] == [nodes, nodes]
    assert leaders == {name: places[name] for name in leaders}
    # By their ids they fall as dice do: below half its share a shard comes once in a billion runs.
    assert all(count > MESSAGES / 3 / 2 for each in counts.values() for count in each), counts
    assert "H214" not in asked.out, asked.out


def _await_all(rabbit: Rabbit, queues: list[str]) -> list[int]:
    """How many messages each queue has, once they have all that were published."""
    found = until(
        lambda: counts if sum(counts := [rabbit.ready(name) for name in queues]) == MESSAGES else None,
        30,
        what="all messages in the shards",
    )
    assert found is not None
    return found


@pytest.mark.skipif(not AT_LENGTH, reason="minutes of waiting: run by make faults")
@pytest.mark.parametrize("shards", [1, 3])
def test_profile_safe_loses_nothing_when_leaders_are_killed(
    cluster: Cluster, topology: TopologyFile, account: Callable[[str], Account], shards: int
) -> None:
    """While messages expire, the leaders of their wait and of their target are killed in turn: all arrive."""
    book = account(f"{cluster.broker.version} on three nodes, {plural(shards, 'shard')}, {KILLS} killed:")
    wait = "delay.2s.queue" if shards == 1 else "delay.2s.1.queue"
    text = SAFE.replace("profile: safe", f"profile: safe, shards: {shards}")
    with fresh_vhost(cluster.broker) as rabbit:
        assert rabbit.delayctl("apply", topology.write(text), "--yes").code == 0
        urls = cluster.urls(rabbit.vhost)
        with (
            DelayPublisher(urls, topology=topology.path, give_up_after_s=300, heartbeat_s=5) as publisher,
            consuming(rabbit, topology.path, book, urls=urls),
        ):
            with publishing(publisher, book, "2s", pace_s=PACE_S):
                for number in range(KILLS):
                    _await_flow(book)
                    leader = cluster.leader(rabbit.vhost, (wait, "target")[number % 2])
                    leader.kill()
                    # Refused ones count: on 3.10 a channel that was opened before there was a new leader is refused all
                    # as long as the old one's node is away.
                    await_answered(book, BETWEEN_KILLS)
                    leader.start()
                    cluster.await_whole()
                _await_flow(book)
            until(lambda: book.has(book.confirmed), LATEST_S, what="the arrival of all that was confirmed")

    book.check()
    assert book.failed.keys() <= {Nacked.__name__}, "all that was not confirmed was refused, and the publisher was told"


def _await_flow(book: Account) -> None:
    """Wait until messages go in and, expired, come out again."""
    wanted = len(book.received) + BETWEEN_KILLS
    await_confirmed(book, BETWEEN_KILLS)
    until(lambda: len(book.received) >= wanted, LATEST_S, what=f"the arrival of {BETWEEN_KILLS} more messages")
