"""The command simulate: questions, answers, and what is said of questions that can't be answered."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from delayctl.cli.simulate import simulate

from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl
from tests.support.golden import check_golden

FILE = """
version: 1
delay:
  levels:
    1m: {}
    15m: {max_length: 1000000}
    30m: {max_length: 5000000}
    precious: {ttl: 5m, profile: safe, max_length: 100000}
exchanges:
  orders.exchange: {type: topic}
queues:
  orders.timeout.queue: {}
  stores.queue: {}
routes:
  - {from: orders.exchange, key: order.created, delay: 30m, to: orders.timeout.queue}
  - {key: store.updated, delay: 15m, to: stores.queue}
  - {key: invoice, delay: precious, to: stores.queue}
lint: {memory: 4GiB}
"""


@pytest.fixture
def file(topology: TopologyFile, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file, in a folder that it is named without."""
    topology.write(FILE)
    monkeypatch.chdir(topology.path.parent)
    return topology.path.name


def answer(ran: Ran) -> Any:
    """The JSON that a command printed."""
    assert ran.err == ""
    return json.loads(ran.out)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fits", "--rate order.created=1000/s --for 2h"),
        ("early", "--rate store.updated=1500/s --burst store.updated=5000/s@1h+5m --for 2h"),
        ("refused", "--rate invoice=500/s --for 30m"),
        ("behind", "--rate order.created=1000/s --for 2h --consume orders.timeout.queue=800/s"),
        (
            "away",
            "--rate store.updated=100/s --for 1h --away 5m+5m --consumer-away 30m+1m --memory-per-message 500",
        ),
        ("every_route", "--rate 2778/s --for 1h"),
        ("unrouted", "--level 1m --rate 10/s --message-size 2kB"),
        ("nowhere", "--exchange orders.exchange --key foo --rate 10/s"),
        ("burst", "--burst order.created=50/s@1m+1m --away 5h+5m --consumer-away 6h+1m"),
    ],
)
def test_the_answer_as_text(file: str, name: str, options: str) -> None:
    """Tables, charts, and what to do about it."""
    ran = delayctl("simulate", file, *options.split())

    check_golden(f"simulate_{name}.txt", ran.out)
    assert (ran.code, ran.err) == (0, "")


def test_the_answer_as_json(file: str) -> None:
    """The same for programs; a short run, so that the backlog can be read."""
    options = (
        "--rate",
        "store.updated=1200/s",
        "--for",
        "20m",
        "--consume",
        "1000/s",
        "--step",
        "5m",
        "--output",
        "json",
    )

    ran = delayctl("simulate", file, *options)

    check_golden("simulate.json", ran.out)
    assert ran.code == 0


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--rate store.updated=1000/s", 0),
        ("--rate store.updated=2000/s", 1),
        ("--rate invoice=500/s", 1),
        ("--rate order.created=2500/s", 1),  # 4.5 GB of 4 GiB.
        ("--rate order.created=2500/s --memory-per-message 400", 0),
        ("--rate order.created=10/s --away 1m+1m --give-up", 1),
        ("--rate order.created=10/s --away 1m+1m", 0),
        ("--exchange amq.fanout --key order.created --rate 1/s", 0),
        ("--level 1m --rate 10/s", 1),  # All are parked.
        ("--level 1m --rate 10/s --consume delay.unrouted.queue=20/s", 1),
        ("--level 1m --key invoice --rate 10/s", 0),
    ],
)
def test_check_says_by_its_code_whether_it_fits(file: str, options: str, code: int) -> None:
    """Early, refused, given up, not delivered or too much for the memory does not."""
    assert delayctl("simulate", file, *options.split(), "--check").code == code
    assert delayctl("simulate", file, *options.split()).code == 0


def test_the_same_question_has_the_same_answer(file: str) -> None:
    """Nothing is left to chance."""
    first, second = (delayctl("simulate", file, "--rate", "333/s", "--output", "json") for _ in range(2))

    assert first == second


def test_without_a_rate_the_file_says_what_it_expects(topology: TopologyFile) -> None:
    """The routes of a level share its expected rate."""
    text = FILE.replace("15m: {max_length: 1000000}", "15m: {max_length: 1000000, expected_rate: 100/s}")
    found = answer(delayctl("simulate", topology.write(text), "--output", "json"))

    assert [(level["level"], level["most_waiting"]["count"]) for level in found["levels"]] == [("15m", 90_000)]
    assert found["streams"] == [
        {
            "exchange": "delay.15m.exchange",
            "key": "store.updated",
            "key_is_made_up": False,
            "rates": [{"from_ms": 0, "to_ms": 1_800_000, "per_second": 100.0}],
            "messages": None,
        }
    ]


def test_a_rate_with_a_key_counts_more_than_one_for_all(file: str) -> None:
    """In whatever order they are given."""
    one, other = (
        answer(delayctl("simulate", file, *options, "--for", "1m", "--output", "json"))
        for options in (
            ("--rate", "1/s", "--rate", "invoice=5/s"),
            ("--rate", "invoice=5/s", "--rate", "1/s"),
        )
    )

    rates = {stream["key"]: stream["rates"][0]["per_second"] for stream in one["streams"]}
    assert rates == {"order.created": 1, "store.updated": 1, "invoice": 5}
    assert {stream["key"]: stream["rates"][0]["per_second"] for stream in other["streams"]} == rates


def test_several_levels_at_once(file: str) -> None:
    """Each gets the rate."""
    found = answer(delayctl("simulate", file, "--level", "1m", "--level", "900s", "--rate", "7/s", "--output", "json"))

    assert [(level["level"], level["most_waiting"]["count"]) for level in found["levels"]] == [
        ("1m", 420),
        ("15m", 6_300),
    ]


def test_a_burst_alone_is_traffic_too(file: str) -> None:
    """Of a key that has no rate."""
    found = answer(delayctl("simulate", file, "--burst", "invoice=10/s@1m+10s", "--for", "5m", "--output", "json"))

    assert found["published"] == 100


def test_hand_made_waits_are_simulated_too(topology: TopologyFile) -> None:
    """A queue with a TTL and a dead-letter exchange, in a file without levels."""
    text = """
version: 1
delay: none
exchanges: {done: {}, orders: {}}
queues: {slow: {arguments: {x-message-ttl: 60000, x-max-length: 50, x-dead-letter-exchange: done}}}
routes:
  - {from: orders, key: order, to: slow}
  - {from: done, key: order, to: work}
"""
    options = ("--exchange", "orders", "--key", "order", "--rate", "1/s", "--for", "10m", "--output", "json")

    found = answer(delayctl("simulate", topology.write(text), *options))

    assert [(level["level"], level["early"]["count"]) for level in found["levels"]] == [("slow", 550)]


CSV = {
    "seconds": ("0,5\n60,7\n", [("order.created", 12)]),
    "durations": ("time,count\n0s,5\n1m,7\n", [("order.created", 12)]),
    "dates": ("2026-11-16T12:00:00Z,5\n\n2026-11-16T12:01:00Z,7\n", [("order.created", 12)]),
    "since 1970": ("1763294400,5\n1763294460.5,7\n", [("order.created", 12)]),
    "milliseconds since 1970": ("1763294400000\n1763294460500\n", [("order.created", 2)]),
    "times alone": ("# recorded\n0.001\n0.002\n0.002\n61\n", [("order.created", 4)]),
    "keys": ("0,5,invoice\n60,7\n61,1,invoice\n", [("invoice", 6), ("order.created", 7)]),
    "counts left out": ("0,\n60,,invoice\n61,,\n", [("invoice", 1), ("order.created", 2)]),
    "not in order": ("60,7\n0,5\n", [("order.created", 12)]),
    "with a byte order mark": ("\ufefftime,count\r\n0,5\r\n", [("order.created", 5)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CSV)
def test_arrivals_from_a_file(file: str, tmp_path: Path, name: str) -> None:
    """In every way to write a time."""
    text, expected = CSV[name]
    (tmp_path / "arrivals.csv").write_text(text, encoding="utf-8", newline="")

    found = answer(
        delayctl("simulate", file, "--arrivals", "arrivals.csv", "--key", "order.created", "--output", "json")
    )

    assert sorted((stream["key"], stream["messages"]) for stream in found["streams"]) == expected


def test_counts_of_intervals_can_be_spread(file: str, tmp_path: Path) -> None:
    """Taken as lumps there is a note; spread, the rate of each line lasts until the next."""
    (tmp_path / "arrivals.csv").write_text("0m,600\n1m,1200\n2m,0\n3m,600\n")
    options = ("simulate", file, "--arrivals", "arrivals.csv", "--key", "invoice", "--output", "json")

    lumps, spread = answer(delayctl(*options)), answer(delayctl(*options, "--spread"))

    assert lumps["findings"][0]["what"].startswith("the lines of arrivals.csv are 1m apart and taken as lumps")
    assert spread["streams"][0]["rates"] == [
        {"from_ms": 0, "to_ms": 60_000, "per_second": 10.0},
        {"from_ms": 60_000, "to_ms": 120_000, "per_second": 20.0},
        {"from_ms": 180_000, "to_ms": 240_000, "per_second": 10.0},
    ]
    assert (lumps["published"], spread["published"]) == (2_400, 2_400)


def test_many_times_are_rounded_rather_than_kept(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording of millions does not fill the memory; no message is lost by it."""
    monkeypatch.setattr("delayctl.cli.simulate_arrivals._MOST_TIMES", 50)
    (tmp_path / "arrivals.csv").write_text("".join(f"{number / 1000}\n" for number in range(1_000)))

    found = answer(delayctl("simulate", file, "--arrivals", "arrivals.csv", "--key", "invoice", "--output", "json"))

    assert (found["published"], found["traffic_ends_ms"]) == (1_000, 1_000)


BAD_CSV = {
    "-5,3\n": ":1\n",
    "0,5\nx,3\n": "'x' is not a time\n  at arrivals.csv:2\n",
    "0,5\n1,-2\n": "'-2' is not a number of messages\n  at arrivals.csv:2\n",
    "0,1.5\n": "'1.5' is not a number of messages",
    "0,5,key,more\n": "4 columns are more than time, count and key",
    "0,5\n2026-01-01,5\n": "mixed\n  at arrivals.csv:2\n",
    "0;5;order.created\n": "the columns are separated by semicolons\n  at arrivals.csv:1\n",
    "count,time,key\n5,0,a\n": "the columns are count, time, key\n  at arrivals.csv:1\n  fix: write the columns in the order time,count,key",
    "time,key,count\n0,a,5\n": "the columns are time, key, count\n  at arrivals.csv:1\n",
    "20000d\n": "'20000d' is more than ten years",
    "1e400\n": "'1e400' is not a time",
    "nan\n": "'nan' is not a time",
    "": "there are no arrivals in the file",
    "time,count\n": "there are no arrivals in the file",
    '0,5\n"1,5\n': "",
    "0,5\n" + "9" * 200_000 + "\n": "arrivals.csv:2",
}


@pytest.mark.parametrize("text", BAD_CSV, ids=range(len(BAD_CSV)))
def test_a_bad_line_is_reported_with_its_number(file: str, tmp_path: Path, text: str) -> None:
    """And how to write it."""
    (tmp_path / "arrivals.csv").write_text(text)

    ran = delayctl("simulate", file, "--arrivals", "arrivals.csv", "--key", "order.created")

    assert (ran.code, ran.out) == (1, "")
    assert BAD_CSV[text] in ran.err
    assert "fix: write" in ran.err


def test_all_bad_lines_are_reported_together(file: str, tmp_path: Path) -> None:
    """Up to twenty of them."""
    (tmp_path / "arrivals.csv").write_text("x\n" * 50)

    assert delayctl("simulate", file, "--arrivals", "arrivals.csv").err.count("is not a time") == 20


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        ("", 1, "nobody says how many messages come"),
        ("--rate fast", 64, "--rate: 'fast' is not a rate"),
        ("--rate 0/s", 64, "--rate: '0/s' is not a rate"),
        ("--rate 1/s --rate 2/s", 64, "--rate is given twice"),
        ("--rate invoice=1/s --rate invoice=2/s", 64, "--rate is given twice for 'invoice'"),
        ("--rate order.creatd=5/s", 1, "takes the key 'order.creatd' (did you mean 'order.created'?)"),
        ("--rate 5/s --level 2m", 1, "there is no level '2m'"),
        ("--rate 5/s --level 31m", 1, "there is no level '31m' (the nearest is '30m')"),
        ("--rate 5/s --level precios", 1, "there is no level 'precios' (did you mean 'precious'?)"),
        ("--rate 5/s --burst 9/s@10h+1m --for 2h", 64, "a burst lasts until 10h1m, and --for 2h ends before"),
        ("--rate 5/s --give-up", 64, "--give-up is for --away"),
        ("--rate 5/s --consume delay.15m.queue=1/s", 64, "nobody consumes from the delay queue 'delay.15m.queue'"),
        ("--rate 5/s --consumer-away delay.15m.queue=1m+1m", 64, "nobody consumes from the delay queue"),
        ("--level 1m --rate 900/s --for 3650d", 1, "3650d of traffic are too long to be run in steps of 30s"),
        ("--level 1m --rate 900/s --for 3650d --step 1s", 64, "--step 1s makes too many steps of this run"),
        ("--rate 5/s --exchange order.exchange --key a", 1, "(did you mean 'orders.exchange'?)"),
        ("--rate 5/s --exchange delay.exchange", 1, "no delayed route of the file begins at 'delay.exchange'"),
        ("--rate 5/s --exchange a --level 1m", 64, "--exchange and --level exclude each other"),
        ("--rate 5/s --burst 5/s", 64, "--burst '5/s' does not say when"),
        ("--rate 5/s --burst 5/s@1m", 64, "--burst '1m' does not say for how long"),
        ("--rate 5/s --burst 5/x@1m+1m", 64, "--burst: '5/x' is not a rate"),
        ("--rate 5/s --away 5m+0s", 64, "--away '5m+0s' lasts no time"),
        ("--rate 5/s --away=-5m+3m", 64, "--away: '-5m' is not a duration"),
        ("--rate 5/s --consumer-away stores=5m+3m", 64, "--consumer-away: there is no queue 'stores'"),
        ("--rate 5/s --consume work=5/s", 64, "--consume: there is no queue 'work'"),
        ("--rate 5/s --for 0s", 64, "--for 0s lets nothing happen"),
        ("--rate 5/s --for 20000d", 64, "--for: 20000d is more than ten years"),
        ("--rate 5000/s --for 100d --step 1ms", 64, "--step 1ms makes too many steps of this run"),
        ("--rate 5/s --step 0s", 64, "--step 0s makes too many steps of this run"),
        ("--rate 5/s --message-size big", 64, "--message-size: 'big' is not a size"),
        ("--rate 5/s --memory-per-message 0", 64, "--memory-per-message: '0' is not a size"),
        ("--rate 5/s --plot backlog.gif", 64, "--plot backlog.gif has none of the endings .svg, .png, .pdf"),
        ("--rate 5/s --plot no/such/folder.svg", 1, "the picture can't be written: No such file or directory"),
        ("--rate 5/s --arrivals a.csv", 64, "--arrivals goes with neither --rate nor --burst nor --for"),
        ("--rate 5/s --spread", 64, "--spread is for --arrivals"),
        ("--arrivals none.csv", 1, "the file can't be read: No such file or directory"),
        ("--arrivals .", 1, "the file can't be read: Is a directory"),
    ],
)
def test_what_can_not_be_simulated(file: str, options: str, code: int, expected: str) -> None:
    """Said with the fix, and nothing on stdout."""
    ran = delayctl("simulate", file, *options.split())

    assert (ran.code, ran.out) == (code, "")
    assert expected in ran.err
    assert "fix: " in ran.err


def test_a_run_that_is_too_long_is_told_how_long_it_may_be(topology: TopologyFile) -> None:
    """Also where that is less than a day."""
    routes = "".join(f"  - {{key: k{number}, delay: 1s, to: q}}\n" for number in range(400))
    file = topology.write(f"version: 1\ndelay: {{levels: [1s]}}\nroutes:\n{routes}")

    ran = delayctl("simulate", file, "--rate", "1000/s", "--for", "1d")

    assert ran.code == 1
    assert "fix: choose --for 1h or less" in ran.err


def test_arrivals_of_more_than_one_kind_need_a_key(file: str, tmp_path: Path) -> None:
    """They can't all have every key."""
    (tmp_path / "arrivals.csv").write_text("0,5\n")

    ran = delayctl("simulate", file, "--arrivals", "arrivals.csv")

    assert (ran.code, ran.out) == (1, "")
    assert "can be of more than one kind: 'invoice', 'order.created', 'store.updated'" in ran.err


def test_a_file_without_delayed_routes_needs_to_be_told_where(topology: TopologyFile) -> None:
    """A level will do."""
    file = topology.write("version: 1\ndelay: {levels: [30m]}\n")

    assert "the file has no delayed route" in delayctl("simulate", file, "--rate", "5/s").err
    found = answer(delayctl("simulate", file, "--rate", "5/s", "--level", "30m", "--output", "json"))
    assert found["findings"] == [
        {
            "trouble": True,
            "what": "18,000 messages come out of their wait, find no route, and are parked in delay.unrouted.queue: not delivered",
            "fix": "add a route with their key, or name a key that has one; "
            f"delayctl explain {file} --exchange delay.30m.exchange --key any shows their way",
        }
    ]


def test_bytes_are_looked_at_where_the_size_is_known(topology: TopologyFile) -> None:
    """And where it is not, that is said."""
    file = topology.write(FILE.replace("1m: {}", "1m: {max_bytes: 1000}"))
    options = ("simulate", file, "--level", "1m", "--key", "invoice", "--rate", "1/s", "--output", "json")

    unsized, sized = answer(delayctl(*options)), answer(delayctl(*options, "--message-size", "100"))

    assert [finding["what"] for finding in unsized["findings"][-1:]] == [
        "max_bytes of delay.1m.queue is not looked at without --message-size"
    ]
    assert (unsized["fits"], sized["fits"], sized["levels"][0]["most_waiting"]["count"]) == (True, False, 10)


@pytest.mark.parametrize(
    ("max_length", "fix"),
    [
        ("10000", "set max_bytes: 670000, as up to 600 would wait"),
        ("unlimited", "set max_bytes: 670000, as up to 600 would wait"),
        ("150", "set max_bytes: 670000 and max_length: 670, as up to 600 would wait"),
    ],
)
def test_the_limit_that_binds_is_the_one_to_raise(topology: TopologyFile, max_length: str, fix: str) -> None:
    """What is held is reckoned from it, and with what is advised it fits."""
    text = FILE.replace("1m: {}", f"1m: {{max_length: {max_length}, max_bytes: 100000}}")
    options = "--level 1m --key invoice --rate 10/s --message-size 1kB --for 1h --output json"
    raised = text.replace("max_bytes: 100000", "max_bytes: 670000").replace("max_length: 150", "max_length: 670")

    found, after = (answer(delayctl("simulate", topology.write(t), *options.split())) for t in (text, raised))

    level = found["levels"][0]
    assert (level["limited_by"], level["needed_max_length"], level["needed_max_bytes"]) == ("max_bytes", 600, 600_000)
    assert level["holds_per_second"] == pytest.approx(100 / 60)
    assert found["findings"][0]["fix"] == f"{fix}, or keep to 100/m, which 100 messages of 1.0 kB at 1m hold"
    assert after["fits"]


def test_a_long_run_is_not_told_in_steps_beyond_the_wait(topology: TopologyFile) -> None:
    """54,000 fit into 60,000, for a month as for an hour; a step of five minutes would see 270,000."""
    file = topology.write(FILE.replace("1m: {}", "1m: {max_length: 60000}"))
    options = ("--level", "1m", "--key", "invoice", "--rate", "900/s", "--output", "json")

    hour, month = (answer(delayctl("simulate", file, *options, "--for", length)) for length in ("1h", "20d"))
    coarse = answer(delayctl("simulate", file, *options, "--for", "1d", "--step", "5m"))

    assert [(run["fits"], run["levels"][0]["most_waiting"]["count"]) for run in (hour, month)] == [(True, 54_000)] * 2
    assert "steps of 5m are coarse for a wait of 1m" in coarse["findings"][-1]["what"]


def test_a_picture_shades_only_when_something_left_early(file: str, tmp_path: Path) -> None:
    """Two overflows an hour apart are two bands, in the panel of the one level that overflows."""
    options = "--rate store.updated=1000/s --burst store.updated=5000/s@20m+1m --burst store.updated=5000/s@1h+1m"

    delayctl("simulate", file, *options.split(), "--for", "2h", "--plot", "backlog.svg")

    picture = (tmp_path / "backlog.svg").read_text()
    assert len(re.findall(r"<path [^>]*style=\"fill: #d1495b; opacity: 0.14", picture)) == 2


@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_backlog_as_a_picture(file: str, tmp_path: Path, ending: str, begins: bytes) -> None:
    """In the format of its name, and the same picture for the same question."""
    options = ("--rate", "2778/s", "--away", "1h+5m", "--consume", "5000/s")
    for name in ("one", "two"):
        assert delayctl("simulate", file, *options, "--plot", f"{name}.{ending}").code == 0

    one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))

    assert one.startswith(begins)
    assert one == two


def test_a_picture_without_matplotlib(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """How to get it is said before anything takes time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    ran = delayctl("simulate", file, "--rate", "5/s", "--plot", "backlog.svg")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: matplotlib is not installed\n  fix: pip install 'delayctl[plot]'\n"


def test_the_examples_of_the_help_run(file: str, tmp_path: Path) -> None:
    """Each as it stands there."""
    (tmp_path / "monday.csv").write_text("0,5\n60,7\n")
    examples = [
        line.split(maxsplit=1)[1] for line in (simulate.epilog or "").splitlines() if line.startswith("  delayctl")
    ]

    assert len(examples) == 6
    assert [delayctl(*shlex.split(example)).code for example in examples] == [0] * 6


def test_colours_are_for_terminals(file: str) -> None:
    """The text without them is what is piped."""
    ran = delayctl("simulate", file, "--rate", "5000/s")

    assert click.unstyle(ran.out) == ran.out


LADDER_SAID = "a file with a ladder (delay: any, or any: true beside levels)"
LADDER = """
version: 1
delay: {levels: [5m], any: {unit: 1s, steps: 10, max_length: 5000}}
routes:
  - {key: reminder, delay: any, to: reminders.queue}
"""


def test_messages_climb_down_the_ladder(topology: TopologyFile) -> None:
    """At each step as many wait as come while one waits there; the same as explain tells."""
    file = topology.write(LADDER)

    found = answer(delayctl("simulate", file, "--rate", "100/s", "--delay", "1m37s", "--output", "json"))

    assert {level["level"]: level["most_waiting"]["count"] for level in found["levels"]} == {
        "any.00": 100,
        "any.05": 3_200,
        "any.06": 5_000,
    }
    assert found["levels"][-1]["early"]["count"] > 0  # There is no room for 6,400.


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        ("--rate 1/s", 1, "messages with the key 'reminder' wait any delay, and nobody says how long"),
        ("--rate 1/s --delay 1h", 1, "1h is beyond the ladder, which ends at 17m3s"),
        ("--rate 1/s --delay soon", 64, "--delay: "),
        ("--rate 1/s --delay 5m", 0, ""),
    ],
)
def test_any_delay_has_to_be_said(topology: TopologyFile, options: str, code: int, expected: str) -> None:
    """Nobody else knows it."""
    ran = delayctl("simulate", topology.write(LADDER), *options.split())

    assert ran.code == code
    assert expected in ran.err


def test_a_file_without_a_ladder_takes_no_delay(file: str) -> None:
    """It would be ignored."""
    ran = delayctl("simulate", file, "--rate", "1/s", "--delay", "1m")

    assert (ran.code, ran.err.splitlines()[0]) == (64, f"Error: --delay is for {LADDER_SAID}")


def calls_for(routes: int, topology: TopologyFile) -> int:
    """How many functions are called to simulate a file of so many routes."""
    listed = "".join(f"  - {{key: order.k{n}, delay: 1m, to: orders.k{n}.queue}}\n" for n in range(routes))
    file = topology.write(f"version: 1\ndelay: {{levels: [1m]}}\nroutes:\n{listed}")
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        ran = delayctl("simulate", file, "--rate", "1/s", "--for", "1m", "--step", "30s")
    finally:
        sys.setprofile(before)
    assert ran.code == 0
    return calls


def test_the_work_grows_as_the_routes_do(topology: TopologyFile) -> None:
    """Four times the routes make about four times the work, not sixteen times."""
    calls_for(1, topology)  # Imports are made once.

    assert calls_for(400, topology) < 5 * calls_for(100, topology)
