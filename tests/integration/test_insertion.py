"""Delays put into live ways and taken out again, under load of programs that know nothing of it.

DELAYCTL_INSERTIONS says how often; the gate does it a few times.
"""

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support import site
from tests.support.commands import delayctl_process
from tests.support.rabbit import Rabbit
from tests.support.site import TYPES, Traffic, exchange_of, queue_of

TURNS = int(os.environ.get("DELAYCTL_INSERTIONS", "2"))
KILLS = TURNS + 1
DELAY_MS = 1_500
SITE = "\n".join(
    [
        "version: 1",
        "delay: {levels: [1500ms]}",
        "exchanges:",
        *(f"  {exchange_of(type)}: {{type: {type}, existing: true}}" for type in TYPES),
        "queues:",
        *(f"  {queue_of(type)}: {{existing: true}}" for type in TYPES),
        "",
    ]
)
ROUTES = "\n".join(
    [
        "routes:",
        *(
            f"  - {{from: {exchange_of(type)}, key: {exchange_of(type)}.created,{headers}"
            f" delay: 1500ms, to: {queue_of(type)}, replaces: true}}"
            for type in TYPES
            for headers in [" headers: {x-match: all, kind: order}," if type == "headers" else ""]
        ),
        "",
    ]
)
IN_ONE_WAY = """
version: 1
delay: {levels: [1500ms]}
exchanges: {site-topic: {existing: true}}
queues: {site-topic.queue: {existing: true}}
"""
ROUTE = "routes: [{from: site-topic, key: site-topic.created, delay: 1500ms, to: site-topic.queue, replaces: true}]\n"
Note = Callable[[str], None]


@pytest.fixture
def note(request: pytest.FixtureRequest, rabbit: Rabbit) -> Note:
    """Keeps an account to be shown at the end of the run."""
    name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", " ")
    return lambda text: request.node.user_properties.append(("account", f"{rabbit.broker.version} {name}: {text}"))


def test_producer_and_consumer_notice_nothing_but_the_delay(
    rabbit: Rabbit, topology: TopologyFile, tmp_path: Path, note: Note
) -> None:
    """In exchanges of every type, under load of four publishers: nothing lost, nothing twice, each at once or delayed."""
    site.build(rabbit)
    untouched = rabbit.definitions()
    with site.traffic(rabbit, tmp_path, delay_ms=DELAY_MS) as book:
        for _ in range(TURNS):
            book.await_more(100)
            _turn(rabbit, topology.write(SITE + ROUTES), book, waits=True)
            book.await_more(100)
            _turn(rabbit, topology.write(SITE), book, waits=False)
        book.await_more(200)

    note(f"{TURNS} times in and out, {book.check()}")
    until(lambda: rabbit.delayctl("apply", topology.write(SITE), "--yes").code == 0, 30, what="ways out that may go")
    assert rabbit.delayctl("destroy", topology.path.as_posix(), "--yes").code == 0
    assert rabbit.definitions() == untouched


def _turn(rabbit: Rabbit, file: str, book: Traffic, *, waits: bool) -> None:
    book.now(waits=None)
    ran = rabbit.delayctl("apply", file, "--yes")
    # Taken out while messages wait: their ways out stay until a later run.
    assert ran.code == 0 or (not waits and "may still need it on the way out" in ran.out), ran
    assert f"moved way {exchange_of('topic')} [" in ran.out
    book.now(waits=waits)


def test_killed_in_the_middle_it_goes_on(rabbit: Rabbit, topology: TopologyFile, tmp_path: Path, note: Note) -> None:
    """Under load, apply is killed while ways are moved, and run again: nothing lost, nothing twice."""
    site.build(rabbit)
    moments, left_behind = random.Random(7), 0
    with site.traffic(rabbit, tmp_path, delay_ms=DELAY_MS) as book:
        for turn in range(KILLS):
            book.await_more(100)
            waits = turn % 2 == 0
            file = topology.write(SITE + ROUTES if waits else SITE)
            book.now(waits=None)
            _kill_after(rabbit, file, moments.uniform(0, 1.5))
            left_behind += any("delay.move" in exchange for exchange in rabbit.definitions()["exchanges"])
            book.await_more(100)
            ran = rabbit.delayctl("apply", file, "--yes")
            assert ran.code == 0 or (not waits and "may still need it on the way out" in ran.out), ran
            assert not any("delay.move" in exchange for exchange in rabbit.definitions()["exchanges"])
            book.now(waits=waits)
        book.await_more(200)

    note(f"killed {KILLS} times, {left_behind} of them half-way, {book.check()}")
    assert left_behind


def _kill_after(rabbit: Rabbit, file: str, seconds: float) -> None:
    """Kill an apply so long after it has begun to change things."""
    process = delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Plan:"):
            break
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    until(lambda: "delay.lock.queue" not in [queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")], 20)


def test_what_waits_comes_out_after_the_delay_was_taken_out(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The way out stays until nothing waits; then a second apply takes it away."""
    site.build(rabbit)
    assert rabbit.delayctl("apply", topology.write(IN_ONE_WAY + ROUTE), "--yes").code == 0
    rabbit.publish("site-topic", "site-topic.created", "waits")

    first = rabbit.delayctl("apply", topology.write(IN_ONE_WAY), "--yes")
    rabbit.publish("site-topic", "site-topic.created", "at once")
    at_once = rabbit.take("site-topic.queue")
    rabbit.await_ready("site-topic.queue", 1)
    second = rabbit.delayctl("apply", str(topology.path), "--yes")

    assert first.code == 3
    assert "1 waiting message may still need it on the way out" in first.out
    assert [message.body for message in at_once] == ["at once"]
    assert [(message.body, message.key) for message in rabbit.take("site-topic.queue")] == [
        ("waits", "site-topic.created")
    ]
    assert second.code == 0
    assert "deleted binding delay.exchange → [site-topic.created] site-topic.queue" in second.out


def test_the_plan_says_what_is_moved(rabbit: Rabbit, topology: TopologyFile) -> None:
    """As text, as JSON, and in a saved plan that can be applied."""
    site.build(rabbit)
    file, saved = topology.write(IN_ONE_WAY + ROUTE), str(topology.path.with_name("plan.json"))

    text = rabbit.delayctl("plan", file, "--out", saved)
    applied = rabbit.delayctl("apply", "--plan", saved, "--yes")

    move = "way site-topic [site-topic.created]: site-topic.queue ⇒ delay.1500ms.exchange"
    assert f"   => {move}" in text.out.splitlines()
    assert "to delete. 1 way to move." in text.out
    assert f"moved {move}" in applied.out.splitlines()
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_a_direct_way_that_overlaps_is_told(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A pattern that stays would deliver at once what the route delays; lint with the broker sees it as well."""
    site.build(rabbit)
    with rabbit.channel() as channel:
        channel.queue_bind("site-topic.queue", "site-topic", "site-topic.#")

    plan = rabbit.delayctl("plan", topology.write(IN_ONE_WAY + ROUTE))
    found = rabbit.delayctl("validate", str(topology.path), "--live")

    assert "Warning: binding site-topic → [site-topic.#] site-topic.queue stays" in plan.out
    assert "D104" in found.out


def test_lint_does_not_count_what_is_replaced(rabbit: Rabbit, topology: TopologyFile) -> None:
    """The direct way goes in the moment in which the delayed one comes: nothing is delivered twice."""
    site.build(rabbit)
    found = rabbit.delayctl("validate", topology.write(IN_ONE_WAY + ROUTE), "--live")

    assert "D104" not in found.out


def test_without_the_management_api_it_is_refused(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Over AMQP alone the direct way can't be seen, and would stay beside the delayed one."""
    site.build(rabbit)
    before = rabbit.definitions()
    ran = rabbit.delayctl("apply", topology.write(IN_ONE_WAY + ROUTE), "--no-management", "--yes")

    assert ran.code == 1
    assert "replaces: needs the management API" in ran.err
    assert rabbit.definitions() == before
