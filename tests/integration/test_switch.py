"""Delay queues that change: what a user sees on the way, and how to go on, back or elsewhere."""

import json

import pytest
from delayctl.publishers.publisher import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

SLOW, QUICK = "1h", "1500ms"


def text(
    ttl: str = QUICK, *, level: str = "soon", max_length: int = 100, type: str = "classic", home: str = "arguments"
) -> str:
    """A file with one level, and a route through it."""
    return f"""
version: 1
delay:
  settings: {home}
  levels: {{{level}: {{ttl: {ttl}, max_length: {max_length}, type: {type}}}}}
exchanges: {{orders: {{}}}}
queues: {{late: {{}}}}
routes: [{{from: orders, key: order.created, delay: {level}, to: late}}]
"""


def objects(rabbit: Rabbit) -> set[str]:
    """The names of all exchanges, queues and policies that are there only for a change."""
    found = rabbit.api("GET", "definitions/{vhost}")
    return {
        each["name"] for kind in ("exchanges", "queues", "policies") for each in found[kind] if ".next." in each["name"]
    }


def test_a_change_waits_for_what_waits_and_can_be_taken_back(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Without --wait it begins, says what is left, and every command keeps its head; the old file undoes it."""
    file = topology.write(text(SLOW))
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "old")
    before = rabbit.definitions()

    topology.write(text(SLOW, type="quorum"))
    due = rabbit.delayctl("status", file)
    begun = rabbit.delayctl("apply", file, "--yes")
    again = rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "new")
    plan = json.loads(rabbit.delayctl("plan", file, "--output", "json").out)
    pending = rabbit.delayctl("plan", file, "--detailed-exitcode")
    status = rabbit.delayctl("status", file)
    linted = rabbit.delayctl("validate", file, "--live")
    with DelayPublisher(rabbit.url, management_url=rabbit.broker.management_url) as publisher:
        publisher.publish(b"by the record", key="order.created", level="soon").result(10)
    places = rabbit.ready("delay.soon.queue"), rabbit.ready("delay.soon.next.queue")

    assert (begun.code, again.code, pending.code) == (3, 3, 2)
    assert "declared anew" in begun.out
    assert "Go on with the same command at any time; --wait does it all, up to 2h." in again.out
    assert (plan["changes"], plan["refusals"]) == ([], [])
    (wait,) = plan["waits"]
    assert (wait["queue"], wait["messages"], wait["longest_ms"]) == ("delay.soon.queue", 1, 3_600_000)
    assert wait["differences"] == [{"field": "x-queue-type", "live": "classic", "desired": "quorum"}]
    assert "a change is due, and begins with the next apply: level soon" in due.out
    assert "a change is under way: level soon: delay.soon.queue empties by itself" in status.out
    assert linted.code == 0, linted.out + linted.err
    assert places == (1, 2)

    topology.write(text(SLOW))
    back = rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "old again")
    assert back.code == 3, "what came meanwhile still waits"
    assert rabbit.ready("delay.soon.queue") == 2
    with rabbit.channel() as channel:
        channel.queue_purge("delay.soon.next.queue")
    until(lambda: rabbit.delayctl("apply", file, "--yes").code == 0, 60)
    assert rabbit.definitions() == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (text(), text("800ms")),
        (text(home="policy"), text("800ms", home="policy")),
        (text(home="policy"), text()),
        (text(), text(home="policy", max_length=50)),
        (text(), text(level="later")),
        (text(type="quorum"), text(level="later", type="quorum")),
    ],
    ids=["shorter", "shorter by policy", "to arguments", "to policy", "renamed", "renamed quorum"],
)
def test_with_wait_it_goes_to_the_end(rabbit: Rabbit, topology: TopologyFile, before: str, after: str) -> None:
    """All that was sent before, meanwhile or afterwards arrives once; nothing is left behind."""
    file = topology.write(before)
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "before")

    topology.write(after)
    begun = rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "meanwhile")
    ended = rabbit.delayctl("apply", file, "--yes", "--wait", "--output", "json")
    rabbit.publish("orders", "order.created", "afterwards")
    rabbit.await_ready("late", 3)

    assert (begun.code, ended.code) == (3, 0), begun.out + begun.err + ended.out + ended.err
    answer = json.loads(ended.out)
    assert (answer["waits"], answer["refusals"]) == ([], [])
    assert {outcome["outcome"] for outcome in answer["outcomes"]} == {"done"}
    assert sorted(message.body for message in rabbit.take("late")) == ["afterwards", "before", "meanwhile"]
    assert not objects(rabbit)
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_destroy_can_wait(rabbit: Rabbit, topology: TopologyFile) -> None:
    """What waits arrives where it is read, then all of the topology goes."""
    own = text().replace("queues: {late: {}}", "queues: {late: {existing: true}}")
    with rabbit.channel() as channel:
        channel.queue_declare("late", durable=True)
    file = topology.write(own)
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "last")

    gone = rabbit.delayctl("destroy", file, "--yes", "--wait")

    assert gone.code == 0, gone.out + gone.err
    assert [message.body for message in rabbit.take("late")] == ["last"]
    assert [queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")] == ["late"]


def test_another_binding_behind_the_entrance_stops_it(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Also one to an exclusive queue, which 3.10 does not list: messages would go there alone, and wait nowhere."""
    file = topology.write(text(SLOW))
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "waits")
    with rabbit.channel() as channel:
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "delay.soon.exchange", "")
        topology.write(text(SLOW, max_length=50))
        stopped = rabbit.delayctl("apply", file, "--yes")
        rabbit.publish("orders", "order.created", "safe")

    reasons = ("delay.soon.exchange leads to", "queue delay.soon.queue: holds 1 message that would be lost")
    assert stopped.code in (1, 3)
    assert any(reason in stopped.out for reason in reasons), stopped.out
    assert rabbit.ready("delay.soon.queue") == 2, "it is bound, and still there"


def test_a_saved_plan_ends_where_waiting_begins(rabbit: Rabbit, topology: TopologyFile, tmp_path: object) -> None:
    """It says so, and names what goes on: the file, since the plan itself is stale then."""
    file = topology.write(text())
    rabbit.delayctl("apply", file, "--yes")
    topology.write(text(max_length=50))
    saved = f"{tmp_path}/saved.plan"
    rabbit.delayctl("plan", file, "--out", saved)

    refused = rabbit.delayctl("apply", "--plan", saved, "--yes", "--wait")
    begun = rabbit.delayctl("apply", "--plan", saved, "--yes")
    stale = rabbit.delayctl("apply", "--plan", saved, "--yes")
    ended = rabbit.delayctl("apply", file, "--yes", "--wait")

    assert (refused.code, begun.code, stale.code, ended.code) == (64, 3, 1, 0)
    assert "Go on with the file that the plan was made of at any time; --wait does it all, up to 3s." in begun.out
    assert not objects(rabbit)


def test_what_expired_and_finds_no_room_is_counted_once(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A queue that hands on at least once keeps what the one behind it refuses: brokers tell of it twice."""
    full = text().replace("late: {}", "late: {arguments: {x-max-length: 1, x-overflow: reject-publish}}")
    safe = full.replace("max_length: 100, type: classic", "profile: safe")
    assert rabbit.apply_text(safe).code == 0
    rabbit.publish("orders", "order.created", "taken", "refused", "refused")
    until(lambda: rabbit.queue("delay.soon.queue").get("messages_dlx") == 2, 30)

    planned = rabbit.plan_text(full)

    assert "delay.soon.queue empties by itself (2 messages now, up to 1s500ms)" in planned.out


def test_nothing_begins_while_a_policy_bends_the_way_round(rabbit: Rabbit, topology: TopologyFile) -> None:
    """What is published meanwhile would leave early; the plan says whose policy it is, and how to be rid of it."""
    file = topology.write(text(SLOW))
    rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "waits")
    rabbit.put_policy("theirs", r"^delay\..*next\.queue$", message_ttl=1000)
    before = rabbit.definitions()

    topology.write(text(SLOW, max_length=77))
    refused = rabbit.delayctl("apply", file, "--yes")
    rabbit.publish("orders", "order.created", "waits too")

    assert refused.code == 1, refused.out
    assert "messages would wait in delay.soon.next.queue while it is changed, and policy theirs" in refused.out
    assert f"rabbitmqctl clear_policy -p {rabbit.vhost} theirs" in refused.out
    assert (objects(rabbit), rabbit.ready("delay.soon.queue")) == (set(), 2)
    assert rabbit.definitions() == before
    rabbit.api("DELETE", "policies/{vhost}/theirs")
    assert rabbit.delayctl("apply", file, "--yes").code == 3
    assert objects(rabbit) == {"delay.soon.next.exchange", "delay.soon.next.policy", "delay.soon.next.queue"}
