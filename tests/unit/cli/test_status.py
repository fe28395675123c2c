"""A status as text and JSON, compared whole."""

import json
from dataclasses import replace

import click
from delayctl.cli.status_views import WIDTH, status_json, status_text
from delayctl.cli.views import to_json_text
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Node, Samples, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Policy, Queue, Topology, freeze_arguments
from delayctl.topology.parse import read_spec
from delayctl.topology.spec import ROCKETMQ_LEVELS, LevelSpec, QueueSpec, Spec, WaitSpec
from delayctl.topology.status import Facts, Status, status_of
from delayctl.topology.verdict import verdict

from tests.support.commands import delayctl
from tests.support.examples import live_of, shop
from tests.support.golden import check_golden

NOW = 1_700_000_000_000
SHOP = shop()


def history(waiting: int, per_second: int) -> tuple[Samples, Samples]:
    """Ten minutes of what was published, and of what waited."""
    moments = range(600, -1, -5)
    return tuple((NOW - ago * 1000, per_second * (1000 - ago)) for ago in moments), tuple(
        (NOW - ago * 1000, waiting) for ago in moments
    )


def busy(waiting: int, per_second: int) -> Figures:
    """A queue at work."""
    published, lengths = history(waiting, per_second)
    return Figures(waiting, 0, consumers=0, state="running", published=published, lengths=lengths)


def facts(desired: Topology, live: Live, figures: dict[str, Figures], parks: tuple[str, ...] = ()) -> Facts:
    """What a status with these figures is made of, and zeros elsewhere."""
    idle = {name: replace(busy(0, 0), consumers=1 if name == "orders.queue" else 0) for name in live.queues}
    statistics = Statistics({**idle, **figures}, (Node("rabbit@here"),))
    return Facts(desired, parks, diff(desired, live), live, statistics)


def status(desired: Topology, live: Live, figures: dict[str, Figures]) -> Status:
    """A status with these figures, and zeros elsewhere."""
    return replace(status_of(facts(desired, live, figures)), version="4.3.6")


def eventful() -> Status:
    """A bit of everything."""
    return replace(status_of(eventful_facts()), version="4.3.6")


def eventful_facts() -> Facts:
    """What it is made of."""
    desired = shop("1m 5m 15m 1h 2h", max_length=600)
    live = live_of(desired)
    queues = {name: queue for name, queue in live.queues.items() if name != "delay.2h.queue"}
    queues["orders.dlq"] = Queue("orders.dlq")
    theirs = Policy("theirs", "^delay\\.15m", "queues", 20, freeze_arguments({"message-ttl": 60_000}))
    figures = {
        "delay.1m.queue": busy(118, 2),
        "delay.5m.queue": busy(600, 4),
        "delay.15m.queue": Figures(),
        "delay.1h.queue": Figures(500, 0, consumers=0, state="running"),
        "delay.unrouted.queue": Figures(3, 0),
        "orders.dlq": Figures(1, 0),
        "orders.queue": Figures(12, 0, consumers=0),
    }
    return facts(desired, replace(live, queues=queues, policies=(theirs,)), figures, parks=("orders.dlq",))


def shown(found: Status) -> str:
    """A status as a pipe gets it: without colours."""
    reasons = verdict(found, source="topology.yaml")
    return click.unstyle(status_text(found, reasons, source="topology.yaml")) + "\n"


def rocketmq() -> Status:
    """Eighteen levels, all idle but one."""
    wait = WaitSpec()
    desired = expand(Spec(tuple(LevelSpec(name, Duration.parse(name), wait) for name in ROCKETMQ_LEVELS.split())))
    return status(desired, live_of(desired), {"delay.10m.queue": busy(150_000, 250)})


class TestText:
    """For people."""

    def test_eventful(self) -> None:
        """What is wrong is said in words below the table."""
        check_golden("status_eventful.txt", shown(eventful()))

    def test_eighteen_levels(self) -> None:
        """One line each."""
        check_golden("status_rocketmq.txt", shown(rocketmq()))

    def test_nothing_applied(self) -> None:
        """Every level is missing, and one reason says it."""
        check_golden("status_missing.txt", shown(status(shop(), Live(), {})))

    def test_nothing_waits_by_the_file(self) -> None:
        """A file without delays can be healthy as well."""
        desired = shop("", routes=())

        text = shown(status(desired, live_of(desired), {}))

        assert text.startswith("healthy: topology.yaml → virtual host /, RabbitMQ 4.3.6\n\nNo queue waits.\n")

    def test_the_table_keeps_to_a_hundred_columns(self) -> None:
        """Long names give way to figures."""
        name = "a.very.long.queue.name.that.somebody.chose." * 4
        arguments = {
            "x-message-ttl": 90_061_001,
            "x-dead-letter-exchange": "orders.exchange",
            "x-max-length": 5_000_000,
        }
        desired = shop("", routes=(), queues=(QueueSpec(name, arguments=freeze_arguments(arguments)),))
        found = status(desired, live_of(desired), {name: busy(4_999_999, 12_345)})

        head, row = shown(found).splitlines()[2:4]

        assert len(head) == len(row) == WIDTH
        assert row.startswith("a.very.long.")
        assert "…  4,999,999   99%  12,345.0  12,345.0" in row

    def test_colour_is_for_terminals(self) -> None:
        """The views colour; click takes the colours away where nobody sees them."""
        found = eventful()
        text = status_text(found, verdict(found, source="t"), source="t")

        assert text.startswith(click.style("not healthy", fg="red"))


class TestJson:
    """For programs."""

    def test_eventful(self) -> None:
        """What is not known is null."""
        found = eventful()

        check_golden("status_eventful.json", to_json_text(status_json(found, verdict(found, source="t.yaml"))) + "\n")

    def test_it_is_json(self) -> None:
        """It can be read back."""
        found = rocketmq()
        answer = json.loads(to_json_text(status_json(found, verdict(found, source="t.yaml"))))

        assert answer["healthy"] is True
        assert [level["level"] for level in answer["levels"]] == ROCKETMQ_LEVELS.split()


def test_help_has_examples() -> None:
    """Each of them can be run as it is."""
    assert "delayctl status topology.yaml --output json | jq" in delayctl("status", "--help").out


def test_steps_of_the_ladder_that_nothing_waits_at_share_a_line() -> None:
    """The others have one of their own; programs get all of them."""
    text = "version: 1\ndelay: {levels: [5m], any: {steps: 12}}\n"
    desired = expand(read_spec(text, {}, file="topology.yaml"))
    live = live_of(desired)
    live = replace(live, queues={name: queue for name, queue in live.queues.items() if name != "delay.any.11.queue"})

    idle = status(desired, live_of(desired), {})
    found = status(desired, live, {"delay.any.03.queue": busy(7, 1)})

    assert "any: 12 steps of the ladder, with nothing in it" in shown(idle)
    lines = shown(found).splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("any")] == [
        ["any.03", "7"],
        ["any.11", "missing"],
        ["any:", "10"],
    ]
    assert "any: 10 more steps of the ladder, with nothing in it" in lines
    assert [level["level"] for level in status_json(found, ())["levels"]] == [
        "5m",
        *(f"any.{step:02}" for step in range(12)),
    ]


def test_names_move_no_cursor() -> None:
    """A queue behind the exit may have any name, and anybody may have made it."""
    live = live_of(SHOP)
    evil = "evil\x1b[2J\nhealthy"
    way = Binding(SHOP.exit, "queue", evil, "#")
    live = replace(live, queues={**live.queues, evil: Queue(evil)}, bindings=live.bindings | {way})
    found = status(SHOP, live, {})

    text = click.unstyle(status_text(found, verdict(found, source="topology.yaml"), source="topology.yaml"))

    assert text.splitlines()[-1] == "Note: nobody consumes evil\\x1b[2J\\nhealthy"
