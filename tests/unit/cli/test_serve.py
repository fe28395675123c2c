"""What `delayctl serve` says before it serves, and what the page is told. Nothing is listened to here."""

import re
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from delayctl.cli.bedside import Bedside
from delayctl.cli.graph_theme import DARK, LIGHT, PAGE
from delayctl.cli.host import Host
from delayctl.cli.pending_views import Found, Place
from delayctl.cli.serve_run import Page, opened
from delayctl.cli.serve_stage import LiveStage
from delayctl.cli.serve_views import body_text, map_of, map_style, parked_json
from delayctl.cli.serve_words import LABELS, answer_of_page, of_page
from delayctl.cli.simulate_traffic import NoTraffic
from delayctl.consumers.sighting import Body, Sighting
from delayctl.topology.access import access_from
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures, Statistics
from delayctl.topology.parse import read_spec
from delayctl.topology.picture import Picture
from delayctl.topology.picture_depict import depict
from delayctl.topology.picture_subject import subject_of_live
from delayctl.topology.spec import Spec

from tests.support.commands import delayctl
from tests.support.examples import live_of, shop


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file that could be served."""
    path = tmp_path / "topology.yaml"
    path.write_text("version: 1\ndelay: {levels: [1m]}\n", encoding="utf-8")
    return str(path)


class TestOptions:
    """What can't be served."""

    @pytest.mark.parametrize("every", ["0s", "100ms", "2m", "1 day"])
    def test_how_often(self, file: str, every: str) -> None:
        """Neither all the time nor hardly ever."""
        assert delayctl("serve", file, "--every", every).code == 64

    def test_no_such_file(self) -> None:
        """As everywhere."""
        ran = delayctl("serve", "nowhere.yaml")

        assert (ran.code, "delayctl init" in ran.err) == (1, True)

    def test_an_address_of_somebody_else(self, file: str) -> None:
        """The name is nobody's, or not ours."""
        assert delayctl("serve", file, "--host", "no.such.host.invalid").code == 64
        assert "can't be had" in delayctl("serve", file, "--host", "203.0.113.7").err

    @pytest.mark.parametrize("token", ["", "short", "with spaces in it, and long", "é" * 20, "a\nb" * 20])
    def test_a_token_that_is_none(self, file: str, tmp_path: Path, token: str) -> None:
        """It is not repeated, and the fix makes one."""
        (tmp_path / "token").write_text(token, encoding="utf-8")

        ran = delayctl("serve", file, "--token-file", str(tmp_path / "token"))

        assert (ran.code, "secrets.token_urlsafe" in ran.err) == (1, True)
        assert not token or token not in ran.err

    def test_a_token_that_can_t_be_read(self, file: str, tmp_path: Path) -> None:
        """A missing file, and one that is no text."""
        (tmp_path / "binary").write_bytes(b"\xff" * 40)

        for name in ("missing", "binary"):
            ran = delayctl("serve", file, "--token-file", str(tmp_path / name))
            assert (ran.code, "the token can't be read" in ran.err) == (1, True)

    @pytest.mark.parametrize("library", ["uvicorn", "starlette"])
    def test_the_extra_is_not_installed(self, file: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is said how to install it."""
        for name in [
            name for name in sys.modules if name.startswith(("delayctl.web", "delayctl.cli.serve_", f"{library}."))
        ]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)  # Then Python says that there is none.

        ran = delayctl("serve", file)

        assert (ran.code, "pip install 'delayctl[serve]'" in ran.err) == (1, True)


ORDERED = Page("shop.yaml", "127.0.0.1", 8025, (), False, None, Duration.parse("1s"), False)


class TestToken:
    """Who needs one."""

    @pytest.mark.parametrize(
        ("page", "expected"),
        [
            (ORDERED, False),
            (replace(ORDERED, host="localhost"), False),
            (replace(ORDERED, host="::1"), False),
            (replace(ORDERED, host="0.0.0.0"), True),
            (replace(ORDERED, host="192.168.1.7"), True),
            (replace(ORDERED, host="some.name"), True),
            (replace(ORDERED, may_redrive=True), True),
            (replace(ORDERED, names=("localhost", "127.0.0.2", "[::1]")), False),
            (replace(ORDERED, names=("localhost", "delays.example.com")), True),
        ],
    )
    def test_where_others_come_in_or_something_is_changed(self, page: Page, expected: bool) -> None:
        """A new one each time, and long."""
        first, second = page.token(), page.token()

        assert [token is not None and len(token) > 40 for token in (first, second)] == [expected, expected]
        assert (first != second) is expected

    def test_from_a_file(self, tmp_path: Path) -> None:
        """Asked for in any case."""
        (tmp_path / "token").write_text("0123456789abcdef\n")

        assert replace(ORDERED, token_file=str(tmp_path / "token")).token() == "0123456789abcdef"

    def test_a_browser_is_not_given_it_as_an_argument(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is led through a file that others can't read, and that is gone afterwards."""
        given: list[tuple[str, int, str]] = []

        def note(address: str) -> bool:
            file = Path(address.removeprefix("file://"))
            given.append((address, file.stat().st_mode & 0o777, file.read_text(encoding="utf-8")))
            return True

        monkeypatch.setattr(webbrowser, "open", note)
        with opened("http://127.0.0.1:8025/#token=s3cret"):
            pass

        ((address, mode, content),) = given
        assert "s3cret" not in address
        assert (mode, "http://127.0.0.1:8025/#token=s3cret" in content) == (0o600, True)
        assert not Path(address.removeprefix("file://")).exists()


class TestMap:
    """The picture of the page."""

    def picture(self, count: int) -> Picture:
        """The shop with so many messages in each of its queues."""
        figures = Statistics({queue.name: Figures(ready=count, unacknowledged=0) for queue in shop().queues})
        return depict(subject_of_live(Spec(()), shop(), live_of(shop()), figures, title="shop"))

    def test_it_keeps_its_shape_while_messages_are_counted(self) -> None:
        """So it is drawn once."""
        assert map_of(self.picture(0)) == map_of(self.picture(4_711))

    def test_it_can_be_counted_on(self) -> None:
        """Every card with messages has its name and a place for the count."""
        picture = self.picture(1)
        drawn = map_of(picture)

        assert drawn.count('class="count"') == sum(card.messages is not None for card in picture.cards) > 0
        assert all(f'data-card="{card.id}"' in drawn for card in picture.cards)

    def test_its_colours_are_the_page_s(self) -> None:
        """Each that it uses is known, in light and in dark."""
        used = set(re.findall(r"var\((--map-[a-z0-9-]+)\)", map_of(self.picture(1))))
        style = map_style()
        light, dark = style.split("@media")

        assert used
        assert used <= set(re.findall(r"(--map-[a-z0-9-]+):", light))
        assert used <= set(re.findall(r"(--map-[a-z0-9-]+):", dark))
        assert f"--map-ink:{LIGHT.ink};" in light
        assert f"--map-ink:{DARK.ink};" in dark
        assert "#" not in PAGE.ink

    def test_names_are_text(self) -> None:
        """Whatever they are."""
        picture = self.picture(1)
        name = """<script>alert('1')</script>" onload="x"""
        hostile = replace(picture, title=name, cards=tuple(replace(card, title=name) for card in picture.cards))

        parts = list(ElementTree.fromstring(map_of(hostile)).iter())

        assert {part.tag.rpartition("}")[2] for part in parts} == {"svg", "g", "rect", "path", "text", "title", "desc"}
        assert not [name for part in parts for name in part.attrib if name.startswith("on")]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"", ""),
        (b'{"a": 1}', '{"a": 1}'),
        ("grüß".encode()[:-1], "grü"),
        ("a😀".encode()[:-1], "a"),
        (b"\xff\xfe\x00", None),
        (b"a\x00b", None),
    ],
)
def test_bodies(start: bytes, expected: str | None) -> None:
    """Text is shown, also where its last character was cut in two; all else is not."""
    assert body_text(start) == expected


def test_what_is_no_text_is_shown_escaped() -> None:
    """The page gives back what it was shown, to say which messages it means."""
    seen = Sighting("i\udcfe", "r\udcff", "orders", 3, "late: \udcfd", 1_000)

    told = parked_json(Found(Place("orders.dlq", None), 1, (seen,)), [Body(b"\xff", 1)])

    assert told["kinds"] == [{"key": "r\\xff", "reason": "late: \\xfd", "count": 1}]
    assert [(m["id"], m["key"], m["reason"], m["body"]) for m in told["messages"]] == [
        ("i\\xfe", "r\\xff", "late: \\xfd", None)
    ]


def test_what_is_parked() -> None:
    """Each message once, and the kinds by how many there are."""
    seen = tuple(Sighting(f"m-{i}", "order.created", "orders", 3, "late" if i else "lost", 1_000) for i in range(3))
    found = Found(Place("orders.dlq", None), 5, seen, 12, False, False)

    told = parked_json(found, [Body(b"{}", 2)] * 3)

    assert told["kinds"] == [
        {"key": "order.created", "reason": "late", "count": 2},
        {"key": "order.created", "reason": "lost", "count": 1},
    ]
    assert told["messages"][0] == {
        "id": "m-0",
        "key": "order.created",
        "reason": "lost",
        "since": 1_000,
        "attempt": 3,
        "body": "{}",
        "size": 2,
    }
    assert {name: told[name] for name in ("ready", "looked_at", "held_ms", "keeps_place", "more_kinds")} == {
        "ready": 5,
        "looked_at": 3,
        "held_ms": 12,
        "keeps_place": False,
        "more_kinds": 0,
    }


class TestWhatIf:
    """What the simulator says has the words of the form, which has no options."""

    def test_labels_are_those_of_the_form(self) -> None:
        """A field that is called otherwise would not be found."""
        form = (Path(__file__).parents[3] / "web" / "what-if.js").read_text(encoding="utf-8")

        assert [label for label in LABELS.values() if f'"{label}"' not in form] == []

    def test_no_question_takes_minutes(self) -> None:
        """What delayctl simulate would think about for long is refused at once; the fix is what the page can be asked."""
        text = "version: 1\ndelay: {levels: [1m]}\nroutes: [{key: k, delay: 1m, to: q}]\n"
        spec = read_spec(text, {}, file="topology.yaml")
        host = Host(access_from("amqp://127.0.0.1:9"), "/", None)
        stage = LiveStage(Bedside(host, spec, expand(spec), (), "topology.yaml"), title="topology.yaml")

        with pytest.raises(DelayctlError) as caught:
            stage.what_if({"rates": "1000/s", "length": "900d"})

        assert caught.value.what == (
            "900d of traffic are too long to be run in steps of 30s, and a wait of 1m needs them as short as that"
        )
        assert caught.value.fix == (
            "choose “For” 694d or less: what repeats itself says nothing new; or give a longer --step of delayctl simulate"
        )

    def test_no_traffic(self) -> None:
        """A page has no file of arrivals."""
        error = of_page(NoTraffic("nobody says how many messages come", fix="give --rate 1000/s, --arrivals FILE"))

        assert error.fix == "fill in “Messages come at”, such as 1000/s, or write expected_rate in the file"

    def test_other_errors(self) -> None:
        """A field by its label; what only the command has is named as such."""
        error = of_page(BadOption("--for 0s lets nothing happen", fix="choose more, or give --level"))

        assert (error.what, error.fix) == (
            "“For” 0s lets nothing happen",
            "choose more, or give --level of delayctl simulate",
        )

    def test_findings(self) -> None:
        """They are told beside the figures."""
        found = {"trouble": False, "what": "max_bytes of q is not looked at without --message-size", "fix": None}

        told = answer_of_page({"fits": True, "findings": [found]})

        assert told["findings"][0]["what"] == "max_bytes of q is not looked at without “Size of a body”"
