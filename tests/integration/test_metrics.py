"""Figures for Prometheus against what was really done to a broker: by scrape, by textfile, and by consumers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import urllib3
from delayctl.consumers import DONE, Lateness
from delayctl.publishers import DelayPublisher

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.integration.test_status import published
from tests.integration.test_switch import SLOW, text
from tests.support.commands import delayctl_process
from tests.support.consuming import Seen, running
from tests.support.exposed import Exposed
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy

SOON = 60
EXAMPLES = Path(__file__).parents[2] / "examples"
POOL = urllib3.PoolManager(retries=False, timeout=30)

FILE = """\
version: 1
delay:
  levels:
    1s: {}
    1h: {max_length: 10}
    2h: {type: quorum}
queues: {work.queue: {}}
routes:
  - {key: reminder, delay: 1h, to: out.queue}
retry:
  work.queue: {levels: [1s], max: 1, park: work.dlq}
"""
LATE, EARLY = "delayctl_consumer_lateness_seconds", "delayctl_consumer_early_messages_total"


class Told:
    """A file on a broker, whose figures are asked for again and again."""

    def __init__(self, rabbit: Rabbit, file: str, *options: str) -> None:
        self.rabbit, self.file, self.options = rabbit, file, options

    def now(self) -> Exposed:
        """The figures of this moment."""
        ran = self.rabbit.delayctl("metrics", self.file, *self.options)
        assert (ran.code, ran.err) == (0, ""), ran.err
        return Exposed(ran.out)

    def until(self, condition: Callable[[Exposed], object], what: str) -> Exposed:
        """Ask until the figures are as expected."""

        def found() -> Exposed | None:
            told = self.now()
            return told if condition(told) else None

        told = until(found, SOON, what=what, every=0.5)
        assert told is not None
        return told


@pytest.fixture
def told(rabbit: Rabbit, topology: TopologyFile) -> Told:
    """The file, applied."""
    file = topology.write(FILE)
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    return Told(rabbit, file)


def test_what_waits_left_or_is_parked(told: Told) -> None:
    """30 messages into ten places, 7 into a quorum queue, 3 without a way out, 1 given up: each figure says so."""
    told.rabbit.publish("delay.1s.exchange", "nobody.wants.this", "a", "b", "c")
    told.rabbit.publish("", "work.dlq", "d")
    with published(told.rabbit, "delay.1h.exchange", count=30), published(told.rabbit, "delay.2h.exchange", count=7):
        found = told.until(
            lambda f: (
                f.by("level", "delayctl_level_waiting_messages") == {"1s": 0, "1h": 10, "2h": 7}
                and f.by("queue", "delayctl_parked_messages") == {"delay.unrouted.queue": 3, "work.dlq": 1}
                and f.by("queue", "delayctl_target_messages").get("out.queue") == 20
                and f.by("level", "delayctl_level_published_messages_total").get("2h") == 7
            ),
            "all figures",
        )

    # What came through a channel that was closed at once may be missing in the broker's own figures.
    counted = found.by("level", "delayctl_level_published_messages_total")
    assert (counted["1h"], counted["2h"]) == (30, 7)
    assert found.by("level", "delayctl_level_fullness_ratio")["1h"] == 1
    # It takes some renewals of the figures until it says 20; more it never says.
    assert 0 <= found.by("level", "delayctl_level_early_messages").get("1h", 0) <= 20
    assert found.by("level", "delayctl_level_max_length")["1h"] == 10
    assert found.by("level", "delayctl_level_ttl_seconds") == {"1s": 1, "1h": 3600, "2h": 7200}
    assert found.by("level", "delayctl_level_stuck_seconds") == {"1s": 0, "1h": 0, "2h": 0}
    assert found.by("kind", "delayctl_parked_messages") == {"unrouted": 3, "retry": 1}
    assert set(found.all("delayctl_drift_changes")) == {0}
    assert (found.one("delayctl_up"), found.one("delayctl_healthy"), found.one("delayctl_applied")) == (1, 0, 1)
    assert found.one("delayctl_broker_info", version=told.rabbit.api("GET", "overview")["rabbitmq_version"]) == 1
    assert found.one("delayctl_up", topology="topology.yaml", vhost=told.rabbit.vhost) == 1
    assert abs(time.time() - found.one("delayctl_read_timestamp_seconds")) < SOON


def test_drift_by_action(told: Told) -> None:
    """A queue and its binding are gone, a policy shortens another: two to create, one refused."""
    with told.rabbit.channel() as channel:
        channel.queue_delete("delay.2h.queue")
    told.rabbit.put_policy("shorter", "^delay\\.1h", message_ttl=1000)

    found = told.now()

    drift = found.by("action", "delayctl_drift_changes")
    assert {action: count for action, count in drift.items() if count} == {"create": 2, "refused": 1}
    assert found.by("level", "delayctl_level_exists") == {"1s": 1, "1h": 1, "2h": 0}
    assert found.by("level", "delayctl_level_ttl_seconds") == {"1s": 1, "1h": 1}
    assert found.one("delayctl_healthy") == 0


def test_a_switch_under_way(rabbit: Rabbit, topology: TopologyFile) -> None:
    """From due to done, as somebody sees it who may only watch: the tags are enough, without a right on any queue."""
    file, name = topology.write(text(SLOW)), f"watcher-{rabbit.vhost}"
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    rabbit.publish("orders", "order.created", "a", "b", "c")
    rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": "monitoring,policymaker"})
    rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "^$", "write": "^$", "read": "^$"})
    url = rabbit.broker.url.replace("guest:guest", f"{name}:secret")
    told = Told(Rabbit(replace(rabbit.broker, url=url), rabbit.vhost), file)

    def stages(found: Exposed) -> list[str]:
        return [stage for stage, value in found.by("stage", "delayctl_switch_stage").items() if value]

    try:
        # Whoever may not count a queue goes by figures, and they come late.
        idle = told.until(lambda f: f.all("delayctl_level_waiting_messages") == [3], "figures")
        topology.write(text(SLOW, max_length=200))
        due = told.now()
        assert rabbit.delayctl("apply", file, "--yes").code == 3
        under_way = told.now()
        with rabbit.channel() as channel:
            channel.queue_purge("delay.soon.queue")
        empty = told.until(lambda f: stages(f) != ["empties"], "the next stage")
        until(lambda: rabbit.delayctl("apply", file, "--yes").code == 0, SOON, what="the end of the change")
        done = told.now()
    finally:
        rabbit.api("DELETE", f"users/{name}")

    assert [stages(found) for found in (idle, due, under_way, empty, done)] == [
        [],
        ["due"],
        ["empties"],
        ["renewed"],
        [],
    ]
    assert under_way.by("level", "delayctl_level_exists") == {"soon": 1, "soon.next": 1}
    assert under_way.one("delayctl_switch_messages", level="soon", queue="delay.soon.queue") == 3
    assert under_way.one("delayctl_switch_longest_seconds", level="soon") == 3600
    assert sum(due.all("delayctl_drift_changes")) > 0
    assert set(under_way.all("delayctl_drift_changes")) == set(done.all("delayctl_drift_changes")) == {0}


@contextmanager
def listening(told: Told, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`metrics --listen` in a process of its own, and where it serves."""
    arguments = ("metrics", told.file, "--listen", "0", *options)
    process = delayctl_process(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stderr
        said = process.stderr.readline()
        assert said.startswith("Serving http://127.0.0.1:"), said + process.stderr.read()
        yield process, said.removeprefix("Serving ").partition(";")[0]
    finally:
        process.kill()
        process.communicate()


def scraped(url: str) -> Exposed:
    """What a scrape gets."""
    answer = POOL.request("GET", url)
    assert answer.status == 200, answer.data
    return Exposed(answer.data.decode())


def test_a_broker_that_goes_away_and_comes_back(told: Told) -> None:
    """Scrapes go on all the while: up is 1, then 0 with the kind of error, then 1 again; SIGTERM ends it in order."""
    management = urlsplit(told.rabbit.broker.management_url).netloc
    with TcpProxy(management) as proxy:
        where = ("--url", told.rabbit.broker.url, "--vhost", told.rabbit.vhost)
        options = (*where, "--management-url", f"http://127.0.0.1:{proxy.port}", "--max-age", "0s")
        with listening(told, *options) as (process, url):
            there = scraped(url)
            proxy.is_down = True
            proxy.cut()
            away, again = scraped(url), scraped(url)
            proxy.is_down = False
            back = scraped(url)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=30)

    assert [found.one("delayctl_up") for found in (there, away, again, back)] == [1, 0, 0, 1]
    assert away.names == {
        "delayctl_up",
        "delayctl_error_info",
        "delayctl_read_timestamp_seconds",
        "delayctl_read_duration_seconds",
    }
    assert len(back.all("delayctl_level_exists")) == 3
    assert (process.returncode, out) == (0, "")
    assert err.count("Error: ") == 1, "it is said once"
    assert "The broker can be read again.\n" in err
    assert "guest" not in err


def test_a_textfile(told: Told, tmp_path: Path) -> None:
    """The same, in a file."""
    file = tmp_path / "delayctl.prom"

    ran = told.rabbit.delayctl("metrics", told.file, "--textfile", str(file), "--name", "reminders")

    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert Exposed(file.read_text()).one("delayctl_up", topology="reminders") == 1


def test_canaries_add_up(told: Told, tmp_path: Path) -> None:
    """A run that is proved and one that is not: two canaries of four came, and the last word is no."""
    file, way = tmp_path / "verify.prom", {"kind": "level", "way": "1s"}
    run = ("verify", told.file, "--level", "1s", "--up-to", "1s", "--max-lateness", "1m", "--metrics-file", str(file))

    well = told.rabbit.delayctl(*run)
    first = Exposed(file.read_text())
    with told.rabbit.channel() as channel:
        channel.queue_unbind("delay.1s.queue", "delay.1s.exchange", "")
    ill = told.rabbit.delayctl(*run)
    both = Exposed(file.read_text())

    assert (well.code, ill.code) == (0, 1), well.out + ill.out
    assert (first.one("delayctl_verify_proved", **way), both.one("delayctl_verify_proved", **way)) == (1, 0)
    assert both.one("delayctl_verify_canaries_sent_total", **way) == 4
    assert both.one("delayctl_verify_canaries_arrived_total", **way) == 2
    assert both.one("delayctl_verify_lateness_seconds_count", **way) == 2
    assert both.one("delayctl_verify_lateness_seconds_count", kind="exit") == 4


def test_consumers_tell_how_late(told: Told) -> None:
    """By queue: what waited its time, what an overflow sent out an hour early, and what nobody dated."""
    lateness, seen = Lateness(), Seen(lambda _: DONE)
    with DelayPublisher(told.rabbit.url, topology=told.file) as publisher:
        for number in range(12):  # Into ten places.
            publisher.publish(str(number), key="reminder", level="1h")
        for number in range(5):
            publisher.publish(str(number), key="delay.retry.work.queue", level="1s")
    told.rabbit.publish("", "work.queue", "undated")

    handlers = {"out.queue": seen, "work.queue": seen}
    with running(told.rabbit.url, Path(told.file), handlers, lateness=lateness):
        seen.await_count(8, SOON)

    found = Exposed(lateness.exposition())
    assert found.by("queue", f"{LATE}_count") == {"out.queue": 2, "work.queue": 5}
    assert found.by("queue", EARLY) == {"out.queue": 2, "work.queue": 0}
    assert found.by("queue", f"{LATE}_sum")["out.queue"] == 0
    assert found.by("queue", "delayctl_consumer_undated_messages_total") == {"work.queue": 1}


def test_the_example_tells_how_late(rabbit: Rabbit) -> None:
    """A service with prometheus_client: its own counter and the lateness, side by side."""
    assert rabbit.delayctl("apply", str(EXAMPLES / "service.yaml"), "--yes").code == 0
    environment = {**os.environ, "DELAYCTL_URL": rabbit.url, "METRICS_PORT": "0"}
    command = [sys.executable, str(EXAMPLES / "metrics.py")]
    with DelayPublisher(rabbit.url, topology=EXAMPLES / "service.yaml") as publisher:
        publisher.publish("order 4711", key="order.created", level="1s")
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        url, handled = process.stdout.readline().strip(), process.stdout.readline()
        found = until(lambda: _with_lateness(url), SOON, what="a message that was counted")
        process.terminate()
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()

    assert (handled, process.returncode, err) == ("cancelled order 4711\n", 0, "")
    assert found is not None
    assert found.one(f"{LATE}_count", queue="orders.timeout.queue") == 1
    assert (found.one(EARLY), found.one("shop_orders_cancelled_total")) == (0, 1)


def _with_lateness(url: str) -> Exposed | None:
    found = scraped(url)
    return found if found.all(f"{LATE}_count") and found.all("shop_orders_cancelled_total") == [1] else None
