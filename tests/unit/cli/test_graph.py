"""Pictures: whole texts for a small shop, and what holds for every topology there can be."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from delayctl.cli.graph_dot import dot
from delayctl.cli.graph_layout import lay_out
from delayctl.cli.graph_mermaid import mermaid
from delayctl.cli.graph_svg import svg
from delayctl.cli.graph_text import cells, fitted
from delayctl.cli.graph_theme import DARK, LIGHT
from delayctl.cli.inputs import read_topology_file
from delayctl.topology.diff import diff
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings
from delayctl.topology.picture import Picture, Thing
from delayctl.topology.picture_depict import depict
from delayctl.topology.picture_subject import subject_of_file, subject_of_live, subject_of_plan
from delayctl.topology.plan_file import dump_plan
from delayctl.topology.spec import ROCKETMQ_LEVELS, Spec
from hypothesis import given, settings

from examples import pictures
from tests.support.commands import delayctl
from tests.support.examples import live_of, shop
from tests.support.golden import check_golden
from tests.support.strategies import specs

EXAMPLES = Path(__file__).parents[3] / "examples"
HOSTILE = '<script>alert("1")</script>&\n]]>`|{}#"\\'


def picture_of(file: Path) -> Picture:
    """The picture of a file."""
    spec = read_topology_file(str(file), {})
    return depict(subject_of_file(spec, expand(spec), title=file.name))


class TestTexts:
    """What is written for an example."""

    @pytest.mark.parametrize(("ending", "write"), [("svg", svg), ("dot", dot), ("mmd", mermaid)])
    def test_the_example_is_drawn_as_ever(self, ending: str, write: object) -> None:
        """Byte by byte: pictures can be kept in a repository."""
        assert callable(write)
        check_golden(f"graph_example.{ending}", write(picture_of(EXAMPLES / "topology.yaml"), LIGHT))

    def test_dark_is_the_same_picture_in_other_colours(self) -> None:
        """No place changes."""
        picture = picture_of(EXAMPLES / "topology.yaml")

        light, dark = (re.sub("#[0-9a-f]{6}", "", svg(picture, theme)) for theme in (LIGHT, DARK))

        assert light == dark


def things_of(picture: Picture) -> set[Thing]:
    """Every object of the broker that is on a card."""
    return {thing for card in picture.cards for thing in card.things}


def bindings_of(picture: Picture) -> set[Binding]:
    """Every binding that is within a card or on a row of one."""
    rows = {binding for card in picture.cards for row in card.rows for binding in row.bindings}
    return rows | {binding for card in picture.cards for binding in card.bindings}


def assert_nothing_overlaps(picture: Picture) -> None:
    """No two boxes share a spot, and none leaves the sheet."""
    layout = lay_out(picture)
    for one, other in combinations(layout.boxes, 2):
        apart = one.right <= other.x or other.right <= one.x or one.bottom <= other.y or other.bottom <= one.y
        assert apart, f"{one.card.id} and {other.card.id}"
    assert all(
        box.x >= 0 and box.y >= 0 and box.right <= layout.width and box.bottom <= layout.foot for box in layout.boxes
    )


class TestEveryTopology:
    """What holds whatever a file says."""

    @settings(max_examples=60)
    @given(specs())
    def test_all_is_on_the_picture_and_nothing_overlaps(self, spec: Spec) -> None:
        """Every exchange, queue and binding, in well-formed XML."""
        desired = expand(spec)
        picture = depict(subject_of_file(spec, desired, title="generated"))

        named = {Thing("exchange", e.name) for e in desired.exchanges} | {
            Thing("queue", q.name) for q in desired.queues
        }
        assert named <= things_of(picture)
        assert set(desired.bindings) <= bindings_of(picture)
        assert_nothing_overlaps(picture)
        ElementTree.fromstring(svg(picture, LIGHT))
        assert dot(picture, LIGHT)
        assert mermaid(picture, LIGHT)

    def test_eighteen_levels_and_forty_routes(self) -> None:
        """All of it, and in the order of the levels."""
        picture = picture_of(EXAMPLES / "rocketmq.yaml")

        assert_nothing_overlaps(picture)
        assert " ".join(picture.levels) == ROCKETMQ_LEVELS
        assert picture.subtitle == "18 levels, 40 routes, 26 exchanges, 34 queues"


class TestHostileNames:
    """A name is a text, whatever is in it."""

    @pytest.fixture
    def picture(self) -> Picture:
        """A broker with a queue of such a name behind the exit."""
        live = live_of(shop())
        bound = Binding("delay.exchange", "queue", HOSTILE, HOSTILE)
        live = Live(
            live.version,
            live.exchanges,
            {**live.queues, HOSTILE: Queue(HOSTILE)},
            live.bindings | {bound},
            record=live.record,
        )
        spec = Spec(())
        return depict(subject_of_live(spec, shop(), live, Statistics(), title=HOSTILE))

    def test_svg_shows_it_as_text(self, picture: Picture) -> None:
        """No element but those of the drawing, and the whole name where one looks for it."""
        root = ElementTree.fromstring(svg(picture, LIGHT))

        assert not list(root.iter("script"))
        assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
        assert any(
            '<script>alert("1")</script>&\\n' in (title.text or "")
            for title in root.iter()
            if title.tag.endswith("title")
        )

    def test_mermaid_and_dot_keep_it_in_its_quotes(self, picture: Picture) -> None:
        """No sign of it means anything to them."""
        assert "<script" not in mermaid(picture, LIGHT)
        assert '\\"1\\"' in dot(picture, LIGHT)
        assert "<script" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", dot(picture, LIGHT))

    @pytest.mark.parametrize("text", ["orders.timeout.queue", "注文.遅延.キュー" * 9, "a" * 255, "\x00\x1b[31m", ""])
    def test_a_text_is_made_to_fit(self, text: str) -> None:
        """By the places that its letters take."""
        assert cells(fitted(text, 20, 1, 1)) <= 20


class TestLive:
    """What a broker has, beside the file."""

    def test_counts_what_is_missing_and_what_others_bound(self) -> None:
        """Each has its mark; queues that are about to take a level's place are on its card."""
        desired = shop()
        live = live_of(desired)
        lost = Binding("delay.exchange", "queue", "orders.queue", "order.created")
        others = Binding("delay.exchange", "queue", "audit.queue", "#")
        following = Queue("delay.5m.next.queue", Settings(dead_letter_exchange="delay.exchange"))
        live = Live(
            live.version,
            live.exchanges,
            {**live.queues, "audit.queue": Queue("audit.queue"), following.name: following},
            (live.bindings - {lost}) | {others},
            record=live.record,
        )
        counted = Statistics({"delay.5m.queue": Figures(ready=5), following.name: Figures(ready=2)})

        picture = depict(subject_of_live(Spec(()), desired, live, counted, title="now"))

        level = picture.card("level 5m")
        assert (level.messages, level.fullness) == (7, 0.7)
        assert [(row.text, row.note) for row in level.rows] == [("delay.5m.next.queue", "2 waiting")]
        audit = picture.card("queue audit.queue")
        assert (audit.mark, [(row.text, row.mark) for row in audit.rows]) == ("foreign", [("#", "foreign")])
        assert picture.card("queue orders.queue").rows[0].mark == "missing"

    def test_a_toggle_that_was_left_behind_is_just_an_exchange(self) -> None:
        """On the way from its source to the level."""
        desired = shop()
        live = live_of(desired)
        toggle = Exchange("delay.move.abc.exchange", "fanout")
        ways = {
            Binding("orders.exchange", "exchange", toggle.name, "order.created"),
            Binding(toggle.name, "exchange", "delay.5m.exchange"),
        }
        live = Live(live.version, {**live.exchanges, toggle.name: toggle}, live.queues, live.bindings | ways)

        picture = depict(subject_of_live(Spec(()), desired, live, Statistics(), title="now"))

        columns = {card.id: card.column for card in picture.cards}
        assert columns["exchange orders.exchange"] < columns[f"exchange {toggle.name}"] < columns["level 5m"]
        assert_nothing_overlaps(picture)


class TestPlan:
    """What a plan does, by colour and by sign."""

    def test_added_replaced_and_removed_have_their_marks(self) -> None:
        """With the settings that change."""
        before, after = shop("1m 5m"), shop("5m 15m", max_length=20)
        plan = diff(after, live_of(before))

        picture = depict(subject_of_plan(plan, None, title="plan", subtitle="changes"))

        marks = {card.badge: card.mark for card in picture.cards if card.badge}
        assert marks == {"1m": "delete", "5m": "replace", "15m": "create"}
        assert [row.text for row in picture.card("level 5m").rows] == ["x-max-length: 10 → 20", "delay.5m.next.queue"]
        drawn = svg(picture, LIGHT)
        assert all(f">{sign}</text>" in drawn for sign in ("+", "-", "-/+"))

    def test_what_has_to_empty_first_says_so(self) -> None:
        """On the card of the queue that holds messages."""
        plan = diff(shop("5m"), live_of(shop("1m 5m"), {"delay.1m.queue": 3}))

        picture = depict(subject_of_plan(plan, None, title="plan", subtitle="changes"))

        assert picture.card("level 1m").mark == "delete"
        assert [row.text for row in picture.card("level 1m").rows] == ["3 messages leave first, within 1m"]

    def test_what_is_refused_says_why(self) -> None:
        """On the card of the queue that somebody else's policy changes."""
        shorter = Policy("shorter", "^delay", "queues", 0, (("message-ttl", 1000),))
        plan = diff(shop("5m"), replace(live_of(shop("5m")), policies=(shorter,)))

        picture = depict(subject_of_plan(plan, None, title="plan", subtitle="changes"))

        assert picture.card("level 5m").mark == "refused"
        assert [row.text for row in picture.card("level 5m").rows] == [
            "policy shorter (priority 0) changes what it does"
        ]


def home_with_fonts(folder: Path) -> Path:
    """A home with the fonts that matplotlib brings: a small system has none, and a PNG needs some."""
    (folder / ".local/share").mkdir(parents=True)
    (folder / ".local/share/fonts").symlink_to(Path(matplotlib.get_data_path()) / "fonts" / "ttf")
    return folder


class TestCommand:
    """Files, formats and mistakes."""

    FILE = str(EXAMPLES / "topology.yaml")

    @pytest.mark.parametrize(
        ("name", "beginning"),
        [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.mmd", b"---\ntitle"), ("a.gv", b"digraph"), ("a.json", b"{")],
    )
    def test_the_ending_says_the_format(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, beginning: bytes
    ) -> None:
        """And the file says what is on it."""
        monkeypatch.setenv("HOME", str(home_with_fonts(tmp_path)))
        ran = delayctl("graph", self.FILE, "-o", str(tmp_path / name))

        assert ran.code == 0
        assert (tmp_path / name).read_bytes().startswith(beginning)
        assert "4 levels, 3 routes, 8 exchanges, 6 queues." in ran.err

    def test_a_saved_plan_is_drawn(self, tmp_path: Path) -> None:
        """It is known by its beginning."""
        (tmp_path / "today.plan").write_text(dump_plan(diff(shop(), Live("4.0.5"))), encoding="utf-8")

        ran = delayctl("graph", str(tmp_path / "today.plan"), "--format", "json")

        answer = json.loads(ran.out)
        assert (ran.code, answer["view"]) == (0, "plan")
        assert {card["mark"] for card in answer["cards"]} == {"create"}

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (("-o", "a.gif"), 64, "end it with one of .svg"),
            (("--live", "--plan"), 64, "one picture shows one thing"),
            (("-o", "/nowhere/a.svg"), 1, "the picture can't be written"),
        ],
    )
    def test_mistakes_are_told(self, arguments: tuple[str, ...], code: int, words: str) -> None:
        """With what to do."""
        ran = delayctl("graph", self.FILE, *arguments)

        assert (ran.code, words in ran.err) == (code, True)


class TestDocs:
    """The pictures of the documentation."""

    @pytest.mark.parametrize("name", sorted(pictures.drawn()))
    def test_are_drawn_by_the_code_as_it_is(self, name: str) -> None:
        """`python -m examples.pictures` draws them anew."""
        assert (pictures.FOLDER / name).read_text(encoding="utf-8") == pictures.drawn()[name]
