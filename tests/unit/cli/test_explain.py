"""The command explain, by the file alone."""

import json
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from delayctl.cli.explain_views import MAX_LINES, Explained, explain_json, explain_text
from delayctl.topology.journey import journey
from delayctl.topology.model import Exchange, Queue
from delayctl.topology.routing import Message

from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl
from tests.support.golden import check_golden
from tests.unit.topology.test_journey import waits
from tests.unit.topology.test_routing import network, to

FILE = """
version: 1
delay: {levels: [1m, 5m, 15m]}
exchanges:
  orders.exchange: {type: topic}
  site.exchange: {type: headers}
  theirs.exchange: {existing: true}
queues:
  orders.timeout.queue: {}
  orders.audit.queue: {}
  orders.view.queue: {arguments: {x-message-ttl: 30000}}
routes:
  - {from: orders.exchange, key: order.created, delay: 15m, to: orders.timeout.queue}
  - {from: orders.exchange, key: [order.*, order.#], to: orders.audit.queue}
  - {from: orders.exchange, key: order.viewed, to: orders.view.queue}
  - {from: site.exchange, headers: {kind: store, count: 3}, to: orders.audit.queue}
  - {from: theirs.exchange, key: order.created, delay: 1m, to: orders.timeout.queue}
retry:
  orders.timeout.queue: {levels: [1m, 5m], park: orders.timeout.dlq}
"""


@pytest.fixture
def file(topology: TopologyFile, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file, in a folder that it is named without."""
    topology.write(FILE)
    monkeypatch.chdir(topology.path.parent)
    return topology.path.name


def answer(ran: Ran) -> Any:
    """The JSON that a command printed."""
    return json.loads(ran.out)


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("delayed", ("--exchange", "orders.exchange", "--key", "order.created"), 0),
        ("parked", ("--level", "15m", "--key", "who.knows"), 0),
        ("lost", ("--exchange", "orders.exchange", "--key", "order.viewed"), 1),
        ("returned", ("--exchange", "orders.exchange", "--key", "invoice"), 1),
        ("headers", ("--exchange", "site.exchange", "--header", "kind=store", "--header", "count=3"), 0),
        ("headers_typed", ("--exchange", "site.exchange", "--header", "kind=store", "--header", "count='3'"), 1),
        ("default", ("--exchange", "", "--key", "orders.view.queue", "--header", "CC=[orders.audit.queue]"), 1),
        ("existing", ("--exchange", "theirs.exchange", "--key", "order.created"), 0),
    ],
)
def test_the_way_as_text(file: str, name: str, options: tuple[str, ...], code: int) -> None:
    """A tree with times, and what became of each copy."""
    ran = delayctl("explain", file, *options)

    check_golden(f"explain_{name}.txt", ran.out)
    assert (ran.code, ran.err) == (code, "")


def test_the_way_as_json(file: str) -> None:
    """The same for programs."""
    ran = delayctl("explain", file, "--exchange", "orders.exchange", "--key", "order.created", "--output", "json")

    assert ran.code == 0
    check_golden("explain.json", ran.out)


def test_a_level_is_known_by_its_duration_too(file: str) -> None:
    """900s are 15m."""
    by_name, by_duration = (
        delayctl("explain", file, "--level", level, "--key", "order.created") for level in ("15m", "900s")
    )

    assert by_name == by_duration
    assert by_name.code == 0


def test_parking_of_retries_is_parking(file: str) -> None:
    """What is sent to the parking queue of a retry is parked there."""
    ran = delayctl("explain", file, "--exchange", "", "--key", "orders.timeout.dlq", "--output", "json")

    assert [end["fate"] for end in answer(ran)["ends"]] == ["parked"]


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (
            ("--exchange", "order.exchange"),
            1,
            "there is no exchange 'order.exchange' (did you mean 'orders.exchange'?)",
        ),
        (("--level", "2m"), 1, "there is no level '2m'"),
        (("--level", "nonsense"), 1, "fix: name one of 1m, 5m, 15m"),
        ((), 64, "say once where it is published"),
        (("--exchange", "a", "--level", "1m"), 64, "say once where it is published"),
        (("--level", "1m", "--key", "ä" * 128), 64, "--key has 256 bytes"),
        (("--level", "1m", "--header", "kind"), 64, "--header 'kind' is not NAME=VALUE"),
        (("--level", "1m", "--header", "=3"), 64, "--header '=3' is not NAME=VALUE"),
        (("--level", "1m", "--header", "kind=[a"), 64, "--header 'kind=[a' can't be read: "),
        (("--level", "1m", "--header", "kind={a: b}"), 64, "--header 'kind={a: b}' is neither a plain value nor"),
        (("--level", "1m", "--header", f"kind={'9' * 30}"), 64, "is neither a plain value nor"),
        (("--level", "1m", "--header", "CC=a"), 64, "--header CC is not a list of keys"),
    ],
)
def test_what_can_not_be_explained(file: str, options: tuple[str, ...], code: int, expected: str) -> None:
    """Said with the fix, and nothing on stdout."""
    ran = delayctl("explain", file, *options)

    assert (ran.code, ran.out) == (code, "")
    assert expected in ran.err


@pytest.mark.parametrize("value", ["3", "003", "3_0", "'3'", "on", "true", "1:30", "-7", "+7"])
def test_a_header_is_read_as_the_file_reads_it(topology: TopologyFile, value: str) -> None:
    """The same spelling means the same on both sides."""
    route = f"{{from: in, headers: {{v: {value}}}, to: out}}"
    file = topology.write(f"version: 1\ndelay: none\nexchanges: {{in: {{type: headers}}}}\nroutes: [{route}]\n")

    assert delayctl("explain", file, "--exchange", "in", "--header", f"v={value}").code == 0
    assert delayctl("explain", file, "--exchange", "in", "--header", "v=another").code == 1


OPEN_ENDED = """
version: 1
delay: {levels: [5m]}
exchanges:
  orders.exchange: {type: topic}
  theirs.exchange: {existing: true}
queues: {theirs.exchange: {existing: true}}
routes:
  - {from: orders.exchange, key: order.created, delay: 5m, to: orders.queue}
  - {key: store.updated, delay: 5m, to: {exchange: site.exchange}}
  - {key: store.moved, delay: 5m, to: [{exchange: theirs.exchange}, theirs.exchange]}
"""


def test_what_others_bind_to_is_no_loss(topology: TopologyFile) -> None:
    """The file can't know what is bound to an exchange that it only hands messages to."""
    file = topology.write(OPEN_ENDED)

    ran = delayctl("explain", file, "--level", "5m", "--key", "store.updated")
    (end,) = answer(delayctl("explain", file, "--level", "5m", "--key", "store.updated", "--output", "json"))["ends"]

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[2:] == [
        "  +0s  delay.5m.exchange (fanout)",
        "       └─ delay.5m.queue: waits 5m",
        "  +5m     └─ delay.exchange (topic)",
        "             └─ store.updated → site.exchange (topic): handed over: what is bound there is not in the file",
        "",
        "Handed over to exchange site.exchange after 5m: what is bound there is not in the file.",
        "Note: the file binds nothing that takes it to site.exchange; --live looks at the broker.",
    ]
    assert (end["fate"], end["exchange"], end["queue"], end["after_ms"]) == (
        "handed_over",
        "site.exchange",
        None,
        300_000,
    )


@pytest.mark.parametrize(
    ("exchange", "fates", "code"),
    [
        ("theirs.exchange", ["handed_over"], 0),
        ("amq.topic", ["handed_over"], 0),
        ("orders.exchange", ["returned"], 1),  # The file binds to it, and so says what it takes.
    ],
)
def test_whose_bindings_the_file_knows(topology: TopologyFile, exchange: str, fates: list[str], code: int) -> None:
    """Those of its own exchanges that it binds to; of others it knows only a part."""
    ran = delayctl("explain", topology.write(OPEN_ENDED), "--exchange", exchange, "--key", "nobody", "--output", "json")

    assert ([end["fate"] for end in answer(ran)["ends"]], ran.code) == (fates, code)


def test_a_note_names_everything_once(topology: TopologyFile) -> None:
    """Also where an exchange and a queue share their name."""
    ran = delayctl("explain", topology.write(OPEN_ENDED), "--level", "5m", "--key", "store.moved")

    assert "Note: of theirs.exchange the file knows only its own bindings and no settings" in ran.out


def test_a_file_without_levels_knows_of_no_policy(topology: TopologyFile) -> None:
    """Where others delay by policy, the file can't tell."""
    file = topology.write("version: 1\ndelay: none\nroutes: [{from: in, key: a, to: w1}]\n")

    ran = delayctl("explain", file, "--exchange", "in", "--key", "a")

    assert "Delivered to w1 at once." in ran.out
    assert "Note: a policy on the broker can make a queue wait, and is not in the file" in ran.out


def test_the_examples_of_the_help_run_on_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but those that ask a broker."""
    monkeypatch.chdir(tmp_path)
    assert delayctl("init").code == 0
    lines = (line.strip() for line in delayctl("explain", "--help").out.splitlines())
    examples = [shlex.split(line)[1:] for line in lines if line.startswith("delayctl explain")]

    assert len(examples) == 5
    for example in examples:
        if "--live" not in example:
            assert delayctl(*example).code == 0, example


def told(*objects: Any, exchange: str, key: str) -> tuple[list[str], dict[str, Any]]:
    """Text and JSON for a made-up network."""
    there = network(*objects)
    explained = Explained(journey(there, exchange, Message(key)), there, "here")
    return click.unstyle(explain_text(explained)).splitlines(), explain_json(explained)


def test_a_circle_and_a_double_are_told() -> None:
    """The copy that circles is dropped, the other arrives twice."""
    objects = [Exchange("x", "fanout"), waits("q1", 5, "x"), waits("q2", 7, "x", key="k"), Queue("q3")]

    text, data = told(*objects, *(to("x", name) for name in ("q1", "q2", "q3")), exchange="", key="q1")

    assert text == [
        "here: a message to the default exchange with the key q1",
        "",
        "    +0s  the default exchange",
        "         └─ q1: waits 5ms unless consumed before",
        "   +5ms     └─ x (fanout)",
        "               ├─ q1: dropped as a cycle: it waited there before, and the broker drops what circles",
        "               ├─ q2: waits 7ms unless consumed before",
        "  +12ms        │  └─ x (fanout), now with the key k",
        "               │     ├─ q1: dropped as a cycle: it waited there before, and the broker drops what circles",
        "               │     ├─ q2: dropped as a cycle: it waited there before, and the broker drops what circles",
        "               │     └─ q3: delivered",
        "   +5ms        └─ q3: delivered",
        "",
        "Dropped as a cycle 2 times before q1 after 5ms, 12ms: it waited there before, and the broker drops what circles.",
        "Delivered 2 times to q3 after 5ms, 12ms.",
        "Dropped as a cycle before q2 after 12ms: it waited there before, and the broker drops what circles.",
    ]
    assert (data["repeated"], data["safe"], data["total_ms"]) == ({"q3": 2}, False, 12)


def test_odd_ways_are_told() -> None:
    """Exchanges that lead back, that are missing, that are a plugin's; the default exchange as an alternate."""
    objects = [
        Exchange("x", "fanout"),
        Exchange("back", "fanout"),
        Exchange("plugin", "x-random"),
        Exchange("lonely", "topic", alternate=""),
        waits("q1", 5, "gone"),
        to("x", "back"),
        to("back", "x"),
        to("x", "plugin"),
        to("x", "q1"),
        to("back", "q1"),
        to("x", "lonely"),
    ]

    text, _ = told(*objects, exchange="x", key="q1")

    assert text[2:13] == [
        "   +0s  x (fanout)",
        "        ├─ back (fanout)",
        "        │  ├─ x, which it passed already",
        "        │  └─ q1, which has its copy already",
        "        ├─ lonely (topic)",
        "        │  └─ nothing matches, alternate → the default exchange",
        "        ├─ plugin (x-random)",
        "        ├─ q1: waits 5ms unless consumed before",
        "  +5ms  │  └─ gone, which does not exist",
        "        │     └─ lost: the dead-letter exchange gone does not exist",
        "   +0s  └─ unknown: exchange plugin is of type x-random, a plugin's: where it leads is not known here",
    ]


def test_a_hostile_network_is_told_within_bounds() -> None:
    """Cut, and said so; names that would move a cursor do not."""
    names = [f"q{number}\x1b[2J" for number in range(12)]
    objects = [Exchange("x", "fanout"), *(waits(name, 1, "x") for name in names), *(to("x", name) for name in names)]

    text, data = told(*objects, exchange="x", key="a")

    assert len(text) < 3 * MAX_LINES
    assert any("… and more: --output json shows all of it" in line for line in text)
    assert text[-1] == "There are more copies than could be followed: dead-letter exchanges lead to each other."
    assert "\x1b" not in "".join(text)
    assert data["complete"] is False


LADDER = """
version: 1
delay: {levels: [15m], any: {unit: 1m, steps: 8}}
routes:
  - {key: "reminder.#", delay: any, to: reminders.queue}
"""


def test_any_delay_is_told_step_by_step(topology: TopologyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the times added up."""
    topology.write(LADDER)
    monkeypatch.chdir(topology.path.parent)

    ran = delayctl("explain", "topology.yaml", "--delay", "1h29m30s", "--key", "reminder.4711")

    check_golden("explain_any.txt", ran.out)
    assert ran.code == 0


def test_a_delay_that_is_a_level_goes_there(topology: TopologyFile) -> None:
    """As publishers choose it; and one that nothing waits is refused."""
    file = topology.write(LADDER)

    level = answer(delayctl("explain", file, "--delay", "15m", "--key", "reminder.1", "--output", "json"))
    beyond = delayctl("explain", file, "--delay", "5h", "--key", "reminder.1")
    wrong = delayctl("explain", file, "--delay", "soon", "--key", "reminder.1")

    assert (level["exchange"], level["total_ms"]) == ("delay.15m.exchange", 900_000)
    assert (beyond.code, beyond.err.splitlines()[0]) == (1, "Error: 5h is beyond the ladder, which ends at 4h15m")
    assert (wrong.code, wrong.err.splitlines()[1]) == (64, "  fix: write it as 500ms, 10s, 1m30s, 2h or 1d")


def test_a_delay_that_no_level_has(file: str) -> None:
    """What can be done is said in terms of explain: it rounds nothing."""
    ran = delayctl("explain", file, "--delay", "4m", "--key", "order.created")

    assert ran.code == 1
    assert ran.err == (
        "Error: no level waits 4m\n  fix: ask for one of 1m, 5m, 15m; any: true in delay takes every delay\n"
    )
