"""An audit as text, JSON, Markdown and HTML; and the arithmetic behind it. No Spark is started."""

import json
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from delayctl.cli.audit_plot import audit_svg
from delayctl.cli.audit_report import report_text, write_report
from delayctl.cli.audit_views import Finding, audit_json, audit_text, findings, span_text, verdict_words
from delayctl.cli.views import to_json_text
from delayctl.spark.audit import (
    Audit,
    Bar,
    Broken,
    Lateness,
    LevelTally,
    Lying,
    Records,
    Rules,
    Shown,
    Tally,
    Timeline,
    bars_of,
    lateness_of,
    timeline_of,
    width_for,
)

from tests.support.audited import MINUTE, START
from tests.support.commands import delayctl
from tests.support.golden import check_golden

_AT_ONCE = Tally(
    messages=10,
    delivered=10,
    measured=10,
    after_due=Lateness(86_400_000, 90_000_000, 90_061_000, 90_061_000, 90_061_000),
    after_expected=Lateness(2, 4, 9, 9, 9),
)
_1M = Tally(
    messages=1_000_000,
    delivered=999_985,
    untaken=3,
    lost=7,
    waiting=5,
    duplicated=3,
    extra_copies=4,
    given_again=1,
    early=1,
    late=12,
    before_due=2,
    measured=999_987,
    after_due=Lateness(-20, 14, 35, 1_190, 5_400),
    after_expected=Lateness(5, 14, 35, 1_190, 62_400),
)
TROUBLED = Audit(
    Rules(moment=START + 60 * MINUTE),
    ledger_rows=1_000_012,
    total=replace(_1M, messages=1_000_010, delivered=999_995, measured=999_997),
    levels=(LevelTally(None, _AT_ONCE), LevelTally("1m", _1M)),
    unknown=1,
    records=Records(
        files=2,
        deliveries=1_000_009,
        retries=4,
        drained=1,
        without_id=2,
        first=START,
        last=START + 9 * MINUTE,
        broken=3,
        broken_files=(Broken("records/host-1.ndjson", 2), Broken("records/<b>.ndjson", 1)),
    ),
    lying=(Lying("delay.unrouted.queue", 2, 2), Lying("orders.<b>|dlq", 5, 1)),
    lost_after_last_record=2,
    bars=(Bar(None, 2.0, 3.0, 10), Bar("1m", float("-inf"), 0.0, 1), Bar("1m", 4.0, 6.0, 999_986)),
    timeline=Timeline(START, 5_000, (10, 999_990), (10, 999_987), (0, 7)),
    shown=(
        Shown("lost", "order-4711", "1m", START + MINUTE, START + MINUTE, None, 0),
        Shown("duplicated", "<script>|`x`", None, START, START + 5, START + 9, 3),
    ),
)
CLEAN = Audit(
    Rules(moment=START + 60 * MINUTE),
    ledger_rows=2,
    total=Tally(messages=2, delivered=2, measured=2, after_due=Lateness(*[3] * 5), after_expected=Lateness(*[3] * 5)),
    levels=(
        LevelTally(
            "1m",
            Tally(messages=2, delivered=2, measured=2, after_due=Lateness(*[3] * 5), after_expected=Lateness(*[3] * 5)),
        ),
    ),
    records=Records(files=1, deliveries=2, first=START, last=START + 9),
    bars=(Bar("1m", 3.0, 4.0, 2),),
    timeline=Timeline(START, 1, (2, 0, 0, 0), (0, 0, 0, 2), (0, 0, 0, 0)),
)
AUDITS = {"troubled": TROUBLED, "clean": CLEAN}


@pytest.mark.parametrize("name", AUDITS)
def test_text(name: str) -> None:
    """As people read it."""
    check_golden(f"audit_{name}.txt", audit_text(AUDITS[name], ledger="backfill/") + "\n")


def test_json() -> None:
    """As programs read it; infinity, which JSON does not have, is null."""
    text = to_json_text(audit_json(TROUBLED, ledger="backfill/"))

    check_golden("audit_troubled.json", text + "\n")
    assert json.loads(text)["lateness_bars"][1]["start"] is None


@pytest.mark.parametrize("ending", [".md", ".html"])
def test_reports(ending: str) -> None:
    """Whole, but for the picture, which differs with the version of matplotlib."""
    text = report_text(TROUBLED, ending, ledger="backfill/", svg="<svg></svg>", picture="audit.svg")

    check_golden(f"audit_troubled{ending}", text)


class _Tags(HTMLParser):
    """Notes tags that are not closed in order, and what would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what opens."""
        found = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.wrong += [f"{tag} {name}" for name in ("src", "href") if (found.get(name) or "#")[0] != "#"]
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """It closes itself."""
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        """Compare with what is open."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}>")


@pytest.mark.parametrize("name", AUDITS)
def test_an_html_report_is_whole(name: str, tmp_path: Path) -> None:
    """With its picture inside: tags match, ids are unique, and nothing is fetched from anywhere."""
    file = tmp_path / "audit.html"
    write_report(AUDITS[name], str(file), ledger="backfill/")

    tags = _Tags()
    tags.feed(file.read_text(encoding="utf-8"))

    assert (tags.open, tags.wrong) == ([], [])
    assert len(tags.ids) == len(set(tags.ids))
    assert file.read_text(encoding="utf-8").count("<svg") == 1
    assert [each.name for each in tmp_path.iterdir()] == ["audit.html"]


def test_a_markdown_report_has_its_picture_beside_it(tmp_path: Path) -> None:
    """And names it."""
    write_report(CLEAN, str(tmp_path / "audit.md"), ledger="backfill/")

    assert (tmp_path / "audit.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "](audit.svg)" in (tmp_path / "audit.md").read_text(encoding="utf-8")


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are there, and the report says what is missing."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    write_report(CLEAN, str(tmp_path / "audit.html"), ledger="backfill/")

    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "<svg" not in text
    assert "There is no picture: matplotlib is not installed (pip install &#39;delayctl[plot]&#39;)." in text
    assert text.count("<table") == 3


def test_the_picture_is_always_the_same() -> None:
    """No date and no random names, so that reports can be compared; nothing to draw is no picture."""
    assert audit_svg(TROUBLED) == audit_svg(TROUBLED)
    assert audit_svg(replace(CLEAN, timeline=Timeline())) is None


def test_a_picture_without_lateness() -> None:
    """Where all was lost, or drained, what is known is drawn."""
    assert "nobody knows how late" in (audit_svg(replace(TROUBLED, bars=())) or "")


def test_nothing_to_remark() -> None:
    """A clean audit has no findings."""
    assert findings(CLEAN) == ()


def test_what_lies_in_a_queue_is_no_clean_end() -> None:
    """It is in the verdict, though nothing was lost."""
    found = replace(CLEAN, total=replace(CLEAN.total, delivered=1, untaken=1), lying=(Lying("dlq", 1, 1),))

    assert (verdict_words(found), found.is_clean) == ("1 untaken", False)
    assert [each.weight for each in findings(found)] == ["bad"]


def test_what_was_expedited_is_no_trouble() -> None:
    """It is told, and the end is clean all the same."""
    found = replace(CLEAN, total=replace(CLEAN.total, delivered=1, expedited=1))

    assert found.is_clean
    assert findings(found) == (
        Finding("fact", "1 message was expedited: let out on purpose, and neither early nor measured"),
    )


def test_one_is_not_many() -> None:
    """Sentences about one message."""
    found = findings(replace(CLEAN, total=replace(CLEAN.total, early=1, before_due=1)))

    assert found == (
        Finding(
            "bad",
            "1 message came before the broker should have let it out: a full delay queue pushes its oldest out "
            "(see delayctl status), or clocks differ (see --tolerance)",
        ),
    )


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(None, "–"), (0, "0 ms"), (-20, "-20 ms"), (999, "999 ms"), (1_000, "1.00 s"), (61_999, "1m1s"), (-90_061_000, "-1d1h1m1s")],
)  # fmt: skip
def test_spans(ms: int | None, expected: str) -> None:
    """In the unit that suits them."""
    assert span_text(ms) == expected


def test_percentiles() -> None:
    """The smallest value that is not exceeded by so many: of one to a thousand, each once, that is plain."""
    assert lateness_of(dict.fromkeys(range(1, 1_001), 1), 1_234) == Lateness(500, 900, 990, 999, 1_234)
    assert lateness_of({7: 999, 9: 1}, 9) == Lateness(7, 7, 7, 7, 9)
    assert lateness_of({}, None) == Lateness()


def test_bars_leave_no_gaps() -> None:
    """From a whole millisecond to the next bar's: every lateness has its place, and each bar begins where one ends."""
    bars = list(bars_of("1m", dict.fromkeys(range(-5, 2_000), 1)))

    assert (bars[0], bars[1], bars[2]) == (
        Bar("1m", float("-inf"), 0.0, 5),
        Bar("1m", 0.0, 1.0, 1),
        Bar("1m", 1.0, 2.0, 1),
    )
    assert all(left.end == right.start for left, right in pairwise(bars))
    assert all(bar.count == bar.end - bar.start for bar in bars[1:-1])
    assert sum(bar.count for bar in bars) == 2_005


@pytest.mark.parametrize(
    ("span", "width"), [(0, 1), (120, 1), (121, 2), (20 * MINUTE, 10_000), (10**9, 21_600_000), (10**12, 8_333_333_334)]
)
def test_stretches_of_time(span: int, width: int) -> None:
    """Round ones, and never more than 120."""
    assert width_for(span) == width
    assert span <= 120 * width


def test_a_timeline_has_no_holes() -> None:
    """Stretches that nothing came in are zero."""
    rows = [("expected", 0, 2), ("delivered", 2, 1), ("lost", 1, 1)]

    assert timeline_of(100, 120, 10, rows) == Timeline(100, 10, (2, 0, 0), (0, 0, 1), (0, 1, 0))


class TestCommand:
    """What is refused before Spark is started."""

    @pytest.mark.parametrize(
        ("options", "code", "expected"),
        [
            (("--late-after", "soon"), 64, "--late-after: 'soon' is not a duration"),
            (("--until", "soon"), 64, "--until: 'soon' is not a time"),
            (("--until", "2026-11-16T18:30:00"), 64, "--until has no time zone"),
            (("--report", "audit.pdf"), 64, "ends neither in .html nor in .md"),
        ],
    )
    def test_options(self, options: tuple[str, ...], code: int, expected: str) -> None:
        """Each with a fix."""
        records = () if "--record" in options else ("--record", "records/")

        ran = delayctl("audit", "--ledger", "backfill/", *records, *options)

        assert (ran.code, ran.out) == (code, "")
        assert expected in ran.err
        assert "fix: " in ran.err

    def test_nothing_to_compare_with(self) -> None:
        """Neither a record nor a queue."""
        ran = delayctl("audit", "--ledger", "backfill/")

        assert (ran.code, ran.out) == (64, "")
        assert (
            ran.err
            == "Error: there is nothing to compare with\n  fix: name what consumers recorded: --record records/\n"
        )

    def test_without_spark(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        """It says what to install."""
        for name in [name for name in sys.modules if name.startswith("delayctl.spark.audit_")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "pyspark.errors", None)

        ran = delayctl("audit", "--ledger", str(tmp_path), "--record", str(tmp_path))

        assert (ran.code, ran.out) == (1, "")
        assert ran.err == "Error: Spark is not installed\n  fix: pip install 'delayctl[spark]'\n"
