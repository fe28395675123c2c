"""A scene as a frame: one function from a value to what a terminal shows. Pure."""

import textwrap
from collections.abc import Iterator, Sequence

from delayctl.cli.status_views import count_text
from delayctl.cli.watch_columns import bar, is_idle, table
from delayctl.cli.watch_scene import Mark, Scene, Switch, ago, clock
from delayctl.topology.canary import Proof
from delayctl.topology.duration import Duration
from delayctl.topology.status import LevelStatus, Target
from delayctl.topology.status_shards import wholes
from delayctl.topology.verdict import SEVERITIES
from delayctl.topology.wording import argument, plural, shorten
from rich.text import Text

NARROWEST = 20
_LABEL = 9  # The longest label with what keeps it from its text.
_MOST_NAMED = 6
_BAR = 16
_COLOURS = {"unhealthy": "red", "warning": "yellow", "note": "cyan"}
_ASCII = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉░→…≤", "_.-:=+*#||||###.>~<")
_SIGNS = {"+": "green", "-": "red", "!": "red"}


def frame(scene: Scene, *, now_ms: int, width: int, height: int | None = None) -> Text:
    """What is shown of a scene at a moment; with a height, what matters less gives way."""
    width = max(NARROWEST, width)
    head, foot = [*_head(scene, now_ms, width)], [*_foot(scene, width)]
    facts, reasons = [*_facts(scene, now_ms, width)], [*_reasons(scene, width)]
    levels = _levels(scene, width, is_short=False)
    if height is not None and len(head) + len(levels) + len(facts) + len(reasons) + len(foot) + 4 > height:
        levels = _levels(scene, width, is_short=True)
    body = _apart(levels, facts, reasons)
    if height is not None:
        body = _cut(body, height - len(head) - len(foot) - 2, scene, width)
    if scene.away:
        for line in body:
            line.stylize("dim")
    return Text("\n").join(_apart(head, body, foot))


def _apart(*blocks: Sequence[Text]) -> list[Text]:
    """Blocks with an empty line between them."""
    lines: list[Text] = []
    for block in filter(None, blocks):
        lines += [*([Text()] if lines else []), *block]
    return lines


def _cut(lines: list[Text], room: int, scene: Scene, width: int) -> list[Text]:
    if len(lines) <= max(1, room):
        return lines
    kept = max(0, room - 1)
    more = f"… {plural(len(lines) - kept, 'more line')}: delayctl status {argument(scene.source)}"
    return [*lines[:kept], Text(more[:width], "dim")]


def _head(scene: Scene, now_ms: int, width: int) -> Iterator[Text]:
    """Whether all is well, of what, and as of when."""
    status, seen = scene.sight.status, clock(scene.sight.at_ms)
    what = f"{shorten(scene.source, 200)} → {shorten(status.vhost, 60)}, RabbitMQ {status.version}"
    badge = _badge(scene)
    room = width - badge.cell_len - len(seen) - 4
    if len(what) <= room:
        yield Text.assemble(badge, f"  {what}{' ' * (room - len(what))}  ", (seen, "dim"))
    else:
        yield Text.assemble(badge, " " * max(1, width - badge.cell_len - len(seen)), (seen, "dim"))
        yield Text(what if len(what) <= width else f"{what[: width - 1]}…")
    if scene.away:
        yield from _away_lines(scene, now_ms, width)
    if scene.sight.unread:
        yield from _wrapped(
            f"{scene.source} can't be read any more, so what it said before counts: {scene.sight.unread}",
            width,
            "yellow",
        )


def _badge(scene: Scene) -> Text:
    if scene.is_paused:
        return Text(" paused ", "reverse cyan")
    if scene.away:
        return Text(" broker away ", "reverse red")
    if not scene.sight.is_healthy:
        return Text(" not healthy ", "reverse red")
    report = scene.verified.report if scene.verified else None
    is_proved = report is None or report.is_proved
    return Text(" healthy ", "reverse green") if is_proved else Text(" not proved ", "reverse red")


def _away_lines(scene: Scene, now_ms: int, width: int) -> Iterator[Text]:
    assert scene.away is not None
    since = f"{clock(scene.away.since_ms)}, for {ago(scene.away.since_ms, now_ms)}"
    yield from _wrapped(f"No answer since {since}: {shorten(scene.away.what, 400)}", width, "red")
    if scene.away.fix:
        yield from _wrapped(f"fix: {scene.away.fix}", width, "", indent="  ")
    yield from _wrapped(
        f"The figures are those of {clock(scene.sight.at_ms)}; it is asked again every {scene.every}.", width, ""
    )


def _foot(scene: Scene, width: int) -> Iterator[Text]:
    keys = "q quit  p go on" if scene.is_paused else "q quit  p pause"
    parts = [*([keys] if scene.has_keys else []), f"every {scene.every}"]
    legend = "full: of max-length   last 10 min: of its own peak"
    line = "   ".join(parts)
    if scene.sight.status.levels and len(line) + len(legend) + 3 <= width:
        line += " " * (width - len(line) - len(legend)) + legend
    yield Text(line[:width], "dim")


def _levels(scene: Scene, width: int, *, is_short: bool) -> list[Text]:
    """A line for each; steps of the ladder with nothing in them share one, and where room is short all others do, too."""
    levels = [level for level, _ in wholes(scene.sight.status.levels)]
    if not levels:
        return [Text("No queue waits.")]
    idle = [each for each in levels if is_idle(each) and (each.is_step or is_short)]
    shown = [each for each in levels if each not in idle]
    proofs = _proofs(scene)
    lines = table(shown, proofs, width=width, with_late=scene.verify_every is not None) if shown else []
    return [*lines, *_idle(idle, width)]


def _idle(idle: Sequence[LevelStatus], width: int) -> Iterator[Text]:
    steps = sum(level.is_step for level in idle)
    counts = [(len(idle) - steps, "level"), (steps, "step of the ladder")]
    words = [
        f"{count} steps of the ladder" if noun != "level" and count > 1 else plural(count, noun)
        for count, noun in counts
        if count
    ]
    if words:
        yield from _wrapped(f"{' and '.join(words)} with nothing in {'it' if len(idle) == 1 else 'them'}", width, "dim")


def _proofs(scene: Scene) -> dict[str, Proof]:
    report = scene.verified.report if scene.verified else None
    return {p.probe.name: p for p in report.proofs if p.probe.kind in ("level", "rung")} if report else {}


def _facts(scene: Scene, now_ms: int, width: int) -> Iterator[Text]:
    """What is around the levels, a labelled paragraph for each."""
    status = scene.sight.status
    if status.targets:
        yield from _labelled("targets", _targets(status.targets), width)
    parked = ", ".join(f"{count_text(each.messages)} in {shorten(each.queue, 80)}" for each in status.parked)
    yield from _labelled(
        "parked", parked or "nowhere to park", width, "yellow" if any(p.messages for p in status.parked) else ""
    )
    yield from _drift(scene, width)
    for switch in scene.sight.switches:
        first_seen = Mark(scene.sight.at_ms, switch.wait.messages)
        yield from _switch(switch, scene.marks.get(switch.wait.queue, first_seen), now_ms, width)
    if scene.verify_every is not None:
        text, style = _verify(scene, now_ms)
        yield from _labelled("verify", text, width, style)


def _targets(targets: Sequence[Target]) -> str:
    """Those that hold messages or have nobody to take them first."""
    ranked = sorted(targets, key=lambda target: (-(target.messages or 0), bool(target.consumers), target.queue))
    named = [f"{count_text(t.messages)} in {shorten(t.queue, 80)} ({_takers(t)})" for t in ranked[:_MOST_NAMED]]
    return ", ".join(named) + (f" and {len(ranked) - _MOST_NAMED} more" if len(ranked) > _MOST_NAMED else "")


def _takers(target: Target) -> str:
    if target.consumers == 0:
        return "nobody consumes"
    return "consumers: ?" if target.consumers is None else plural(target.consumers, "consumer")


def _drift(scene: Scene, width: int) -> Iterator[Text]:
    lines = scene.sight.drift
    if scene.sight.status.is_missing:
        yield from _labelled("drift", "nothing of the file is on the broker", width, "red")
        return
    yield from _labelled("drift", plural(len(lines), "difference") if lines else "none", width, "red" if lines else "")
    for line in lines[:_MOST_NAMED]:
        yield from _labelled("", shorten(line, 400), width, _SIGNS.get(line[0], "yellow"))
    if len(lines) > _MOST_NAMED:
        yield from _labelled(
            "", f"and {len(lines) - _MOST_NAMED} more: delayctl plan {argument(scene.source)}", width, "dim"
        )


def _switch(switch: Switch, mark: Mark, now_ms: int, width: int) -> Iterator[Text]:
    """How far the change of a delay queue is: the old queue empties first, then the one that was used meanwhile."""
    wait = switch.wait
    if not switch.is_begun:
        yield from _labelled("switch", f"due: {wait}; delayctl apply begins it", width, "yellow")
        return
    steps = "" if wait.subject == wait.queue else "step 1 of 2, " if wait.then == "declared anew" else "step 2 of 2, "
    left = Duration(max(0, wait.longest.ms - (now_ms - mark.since_ms)) // 1000 * 1000)
    share = 1 - wait.messages / mark.most if mark.most else 1.0
    drawn = bar(share, min(_BAR, width - _LABEL - 5), "cyan")
    yield Text.assemble(("switch".ljust(_LABEL), "bold"), drawn, f" {int(share * 100):>3}%")
    text = f"level {wait.subject}: {steps}{wait.queue} empties: {plural(wait.messages, 'message')}, at most {left} more; then it is {wait.then}"
    yield from _labelled("", text, width)


def _verify(scene: Scene, now_ms: int) -> tuple[str, str]:
    """What canaries said last, and in which colour."""
    verified = scene.verified
    if verified is None:
        return f"canaries are on their way, every {scene.verify_every}", ""
    when = f"{ago(verified.at_ms, now_ms)} ago"
    if verified.report is None:
        return f"not possible {when}: {verified.trouble}", "yellow"
    failed = [proof for proof in verified.report.proofs if not proof.is_proved]
    if failed:
        what = f"{failed[0].probe.kind} {failed[0].probe.name}: {failed[0].troubles[0].what}"
        return (
            f"{len(failed)} of {plural(len(verified.report.proofs), 'way')} not proved {when}: {shorten(what, 400)}",
            "red",
        )
    return (
        f"{plural(len(verified.report.proofs), 'way')} proved {when} by {plural(verified.report.sent, 'canary')}",
        "green",
    )


def _reasons(scene: Scene, width: int) -> Iterator[Text]:
    """Why it is not healthy, and what else there is to know."""
    for severity in SEVERITIES:
        for reason in (each for each in scene.sight.reasons if each.severity == severity):
            first = f"{severity.capitalize()}: {shorten(reason.what, 600)}"
            lines = [*_wrapped(first, width, "", indent="  ", hanging=True)]
            lines[0].stylize(_COLOURS[severity], 0, len(severity) + 1)
            yield from lines
            if reason.fix:
                yield from _wrapped(f"fix: {shorten(reason.fix, 600)}", width, "dim", indent="  ")


def _labelled(label: str, text: str, width: int, style: str = "") -> Iterator[Text]:
    """A paragraph behind its label; the label is on the first line alone."""
    lines = textwrap.wrap(text, max(NARROWEST // 2, width - _LABEL), break_on_hyphens=False)
    for number, line in enumerate(lines):
        yield Text.assemble(
            ("" if number else label, "bold"), " " * (_LABEL - (0 if number else len(label))), (line, style)
        )


def _wrapped(text: str, width: int, style: str, *, indent: str = "", hanging: bool = False) -> Iterator[Text]:
    first = "" if hanging else indent
    for line in textwrap.wrap(text, width, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False):
        yield Text(line, style)


def speakable(text: Text, encoding: str) -> Text:
    """The text in letters that a terminal of this encoding knows, as many as there were."""
    try:
        text.plain.encode(encoding)
    except UnicodeEncodeError:
        spoken = text.copy()
        spoken.plain = text.plain.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        return spoken
    return text


def plain(text: Text, encoding: str) -> str:
    """A frame for where there are no colours, and nothing can be drawn over."""
    return "\n".join(line.rstrip() for line in speakable(text, encoding).plain.strip().splitlines())
