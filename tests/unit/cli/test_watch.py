"""Frames of the live view, compared whole at the widths that terminals have, and how scenes follow each other."""

import sys
from dataclasses import replace

import pytest
from delayctl.cli.verify_views import Report
from delayctl.cli.watch_columns import trend
from delayctl.cli.watch_scene import Mark, Scene, Sight, Switch, Verified, ago, clock, sight_of
from delayctl.cli.watch_view import frame, plain
from delayctl.topology.canary import Observed, Probe, Proof, Sighting, Trouble
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Node, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Policy, Queue, Topology, freeze_arguments
from delayctl.topology.plan import Wait
from delayctl.topology.spec import ROCKETMQ_LEVELS, LevelSpec, Spec, WaitSpec
from delayctl.topology.status import Facts

from tests.support.commands import delayctl
from tests.support.examples import live_of, shop
from tests.support.golden import check_golden
from tests.support.memory_broker import MemoryBroker
from tests.support.switches import run_once
from tests.unit.cli.test_status import NOW, busy

EVERY = Duration.parse("2s")
SIZES = [120, 80, 40]


def growing(waiting: int, per_second: int) -> Figures:
    """A queue that fills up, and was empty ten minutes ago."""
    figures = busy(waiting, per_second)
    lengths = tuple((at, waiting * number // 120) for number, (at, _) in enumerate(figures.lengths))
    return replace(figures, lengths=lengths)


def seen(desired: Topology, live: Live, figures: dict[str, Figures], parks: tuple[str, ...] = ()) -> Sight:
    """What a look finds with these figures, and zeros elsewhere."""
    idle = {name: busy(0, 0) for name in live.queues}
    statistics = Statistics({**idle, **figures}, (Node("rabbit@here"),))
    facts = Facts(desired, parks, diff(desired, live), replace(live, version="4.3.6"), statistics)
    return sight_of(facts, source="topology.yaml", now_ms=NOW)


def eventful() -> Scene:
    """Levels that fill, are full, gone and changed by others; messages parked, a queue nobody reads."""
    desired = shop("1m 5m 15m 1h 2h", max_length=600)
    applied = live_of(desired)
    there = {name: queue for name, queue in applied.queues.items() if name != "delay.2h.queue"}
    theirs = Policy("theirs", "^delay\\.15m", "queues", 20, freeze_arguments({"message-ttl": 60_000}))
    live = replace(applied, queues={**there, "orders.dlq": Queue("orders.dlq")}, policies=(theirs,))
    figures = {
        "delay.1m.queue": growing(118, 2),
        "delay.5m.queue": busy(600, 4),
        "delay.15m.queue": Figures(),
        "delay.1h.queue": growing(500, 1),
        "delay.unrouted.queue": Figures(3, 0),
        "orders.dlq": Figures(1, 0),
        "orders.queue": Figures(12, 0, consumers=0),
    }
    sight = seen(desired, live, figures, parks=("orders.dlq",))
    return Scene("topology.yaml", EVERY, sight, has_keys=True)


def calm() -> Scene:
    """All is well, and messages flow."""
    desired = shop("1m 5m", max_length=1_000_000)
    figures = {"delay.1m.queue": busy(1_800, 30), "orders.queue": replace(busy(4, 0), consumers=2)}
    return Scene("topology.yaml", EVERY, seen(desired, live_of(desired), figures), has_keys=True)


def switching(messages: int, *, is_begun: bool = True) -> Sight:
    """A level whose queue is changed."""
    minute = Duration.parse("1m")
    wait = Wait("1m", "delay.1m.queue", messages, minute, Duration(120_000), "declared anew")
    return replace(calm().sight, switches=(Switch(wait, is_begun),))


def proof(name: str, *late_ms: int, trouble: Trouble | None = None) -> Proof:
    """What canaries have found out about a level."""
    probe = Probe("level", name, f"delay.{name}.exchange", "canary", Duration.parse(name))
    sightings = tuple(Sighting(0, probe.wait.ms + late, "canary", {}) for late in late_ms)
    return Proof(probe, "canaries", (trouble,) if trouble else (), Observed(2, sightings))


def verified(*proofs: Proof) -> Verified:
    """A run of canaries, half a minute ago."""
    return Verified(NOW - 30_000, Report("t", "/", "4.3.6", "1", "q", Duration(1), proofs))


def shown(scene: Scene, width: int = 80, height: int | None = None, *, later_ms: int = 0) -> str:
    """A frame as text, a moment after the look."""
    return plain(frame(scene, now_ms=NOW + later_ms, width=width, height=height), "utf-8") + "\n"


@pytest.mark.parametrize("width", SIZES)
class TestFrames:
    """Whole frames; no line is longer than the terminal is wide."""

    def check(self, name: str, scene: Scene, width: int, *, later_ms: int = 0) -> None:
        """Compare with the file of this name and width."""
        text = shown(scene, width, later_ms=later_ms)

        assert max(map(len, text.splitlines())) <= width
        check_golden(f"watch_{name}_{width}.txt", text)

    def test_calm(self, width: int) -> None:
        """What there is to see on a good day."""
        self.check("calm", calm(), width)

    def test_eventful(self, width: int) -> None:
        """A bit of everything that can be wrong."""
        self.check("eventful", eventful(), width)

    def test_away(self, width: int) -> None:
        """The broker is gone: since when, why, and the last figures."""
        scene = calm().without("no management API listens at http://there:15672/api", "start it", NOW + 2_000)

        self.check("away", scene, width, later_ms=75_000)

    def test_switch_and_canaries(self, width: int) -> None:
        """How far a change has come, and how late canaries were."""
        scene = replace(calm(), verify_every=Duration.parse("5m"), verified=verified(proof("1m", 3, 12)))
        scene = scene.after(switching(1_000)).after(switching(250))

        self.check("switch", scene, width, later_ms=20_000)


class TestRoom:
    """A terminal is as high as it is."""

    @pytest.mark.parametrize("height", [8, 12, 24, 50])
    def test_a_frame_is_never_higher_than_the_terminal(self, height: int) -> None:
        """What is left out is counted."""
        lines = shown(eventful(), 80, height).splitlines()

        assert len(lines) <= height
        assert lines[-1].startswith("q quit")
        assert any("more lines: delayctl status topology.yaml" in line for line in lines) == (height < 30)

    def test_idle_levels_give_way(self) -> None:
        """Of eighteen levels those are shown that hold something, where there is no room for all."""
        wait = WaitSpec()
        desired = expand(Spec(tuple(LevelSpec(name, Duration.parse(name), wait) for name in ROCKETMQ_LEVELS.split())))
        scene = Scene("t.yaml", EVERY, seen(desired, live_of(desired), {"delay.10m.queue": busy(150_000, 250)}))

        low, high = shown(scene, 80, 20), shown(scene, 80, 40)

        assert "17 levels with nothing in them" in low
        assert [line.split()[0] for line in high.splitlines()[3:21]] == ROCKETMQ_LEVELS.split()

    def test_a_level_of_several_queues_has_one_line(self) -> None:
        """With all that waits, and how late its canaries were."""
        levels = (LevelSpec("1m", Duration.parse("1m"), WaitSpec(max_length=90, shards=3)),)
        desired = expand(Spec(levels))
        figures = {f"delay.1m.{number}.queue": busy(10 * number, 1) for number in (1, 2, 3)}
        scene = Scene("t.yaml", EVERY, seen(desired, live_of(desired), figures), verify_every=EVERY)

        text = shown(replace(scene, verified=verified(proof("1m", 3, 12))), 120)

        (line,) = (line for line in text.splitlines() if line.startswith("1m"))
        assert line.split()[:6] == ["1m", "3.0", "→", "60", "→", "3.0"]
        assert " 66% " in line
        assert " 12ms " in line
        assert line.endswith("█"), "what waited before"

    def test_a_name_that_moves_cursors_is_harmless(self) -> None:
        """Queues are named by others."""
        sight = calm().sight
        level = replace(sight.status.levels[0], name="evil\x1b[2Jname")
        scene = replace(calm(), sight=replace(sight, status=replace(sight.status, levels=(level,))))

        assert "\x1b" not in shown(scene)


class TestEncoding:
    """Terminals that know no more than ASCII."""

    def test_every_sign_has_its_letter(self) -> None:
        """A frame of as many letters, all of which can be said."""
        text = plain(frame(eventful(), now_ms=NOW, width=100), "ascii")

        assert text.isascii()
        assert "?" not in text.replace(" ? ", "").replace(" ?\n", "")


class TestScenes:
    """One after the other."""

    def test_away_since_the_first_silence(self) -> None:
        """However often nobody answers; and back with the next look."""
        silent = calm().without("gone", None, 5).without("still gone", None, 9)

        assert silent.away is not None
        assert (silent.away.since_ms, silent.away.what) == (5, "still gone")
        assert silent.after(calm().sight).away is None

    def test_a_switch_is_measured_from_where_it_began(self) -> None:
        """The most that was seen is the whole."""
        scene = calm().after(switching(40)).after(switching(90)).after(switching(10))

        assert scene.marks == {"delay.1m.queue": Mark(NOW, 90)}
        assert " 88%" in shown(scene)

    def test_a_switch_that_is_over_is_forgotten(self) -> None:
        """The next one begins anew."""
        assert calm().after(switching(40)).after(calm().sight).marks == {}

    def test_a_change_that_nobody_applied_is_due(self) -> None:
        """It waits for an apply, not for messages."""
        text = shown(calm().after(switching(40, is_begun=False)), 120)

        assert "switch   due: level 1m: delay.1m.queue empties by itself" in text

    def test_the_first_frame_tells_a_switch_that_is_under_way(self) -> None:
        """Nothing has to be seen before for that."""
        text = shown(replace(calm(), sight=switching(40)), 120)

        assert "level 1m: step 1 of 2, delay.1m.queue empties: 40 messages, at most 1m more" in text
        assert "due" not in text

    @pytest.mark.parametrize("after", ["5m", "1m 5m"], ids=["one changes, one goes", "both change"])
    def test_drift_elsewhere_does_not_take_a_switch_back(self, after: str) -> None:
        """Due until somebody applies it, under way from then on, whatever is missing beside it."""
        before, desired = shop("1m 5m"), shop(after, max_length=50)
        broker = MemoryBroker.holding(live_of(before, {"delay.5m.queue": 3, "delay.1m.queue": 2}))
        due = seen(desired, broker.live(), {})
        run_once(broker, desired)
        begun = seen(desired, broker.live(), {})
        broker.unbind(next(b for b in broker.live().bindings if b.destination == "orders.queue"))
        drifted = seen(desired, broker.live(), {})

        assert [{switch.is_begun for switch in sight.switches} for sight in (due, begun, drifted)] == [
            {False},
            {True},
            {True},
        ]
        assert {switch.wait.queue for switch in drifted.switches} == {"delay.1m.queue", "delay.5m.queue"}
        assert (len(begun.drift), len(drifted.drift)) == (0, 1)

    def test_canaries_that_fail_say_why(self) -> None:
        """In the level's line and below."""
        trouble = Trouble("early", "1 of 2 canaries came early", "look at policies")
        scene = replace(calm(), verify_every=EVERY, verified=verified(proof("1m", 1, trouble=trouble)))

        assert "FAILED" in shown(scene)
        assert "1 of 1 way not proved 30s ago: level 1m: 1 of 2 canaries came early" in shown(scene, 120)

    def test_a_file_that_broke_is_told(self) -> None:
        """What it said before still counts."""
        scene = replace(calm(), sight=replace(calm().sight, unread="level '5x' is not a duration"))

        assert "can't be read any more" in shown(scene)


class TestTrend:
    """What waited in each part of the last ten minutes."""

    def test_the_highest_of_each_part(self) -> None:
        """A short peak is not overlooked."""
        samples = tuple((NOW - ago * 1000, 50 if ago == 300 else 1) for ago in range(600, -1, -5))

        assert trend(samples, 7, 4) == [1, 50, 1, 7]

    def test_nobody_looked_before(self) -> None:
        """Which is not the same as nothing."""
        assert trend(((NOW - 5_000, 3), (NOW, 4)), None, 3) == [None, None, 4]

    def test_parts_finer_than_samples(self) -> None:
        """Go on with what was seen last."""
        assert trend(((NOW - 300_000, 3), (NOW, 4)), 4, 8) == [None, None, None, 3, 3, 3, 3, 4]


def test_times_are_told_in_utc() -> None:
    """As everywhere."""
    assert clock(NOW) == "22:13:20 UTC"
    assert (str(ago(NOW - 61_900, NOW)), str(ago(NOW - 3_700_000, NOW))) == ("1m1s", "1h1m")


def test_without_rich_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what does without."""
    monkeypatch.setitem(sys.modules, "rich", None)

    ran = delayctl("watch", "topology.yaml")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        "Error: rich, which draws the live view, is not installed\n  fix: pip install 'delayctl[watch]'"
    )


@pytest.mark.parametrize("option", ["--every", "--verify-every"])
@pytest.mark.parametrize("value", ["0s", "100ms", "often"])
def test_too_often_is_a_usage_error(option: str, value: str) -> None:
    """A broker has other things to do."""
    assert delayctl("watch", "topology.yaml", option, value).code == 64


def test_help_has_examples() -> None:
    """Each of them can be run as it is."""
    assert "delayctl watch topology.yaml --every 5s --verify-every 10m" in delayctl("watch", "--help").out
