"""What canaries have proved, as text or JSON. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
from delayctl.topology.canary import How, Proof, Trouble
from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural, shorten, visible

_HEADINGS = ("", "way", "waits", "proved by", "back", "late")
_WORDS: dict[How, str] = {"canaries": "canaries", "hastened": "hastened", "structure": "objects"}
_LEGEND: dict[How, str] = {
    "canaries": "canaries: waited as any message does; late is the least and the most of them.",
    "hastened": "hastened: canaries left the queue by an expiration of their own; its wait is read from its settings.",
    "structure": "objects: nothing was sent; what is on the broker was followed from exchange to queue instead.",
}
_LONGEST_NAME = 60
_MOST_ROUTES = 30


@dataclass(frozen=True)
class Report:
    """All that one run found out."""

    file: str
    vhost: str
    version: str
    run: str  # What its canaries carry in their header.
    catcher: str
    took: Duration
    proofs: tuple[Proof, ...]
    unproved: tuple[str, ...] = ()  # Waits that are no levels, as people read of them.
    stays_for: Duration | None = None  # How long the catcher outlives its last use.

    @property
    def is_proved(self) -> bool:
        """Say whether every way is."""
        return all(proof.is_proved for proof in self.proofs)

    @property
    def sent(self) -> int:
        """How many canaries were sent."""
        return sum(proof.observed.sent for proof in self.proofs)

    @property
    def at_large(self) -> int:
        """How many of them may still come out."""
        return sum(proof.observed.at_large for proof in self.proofs)


def report_text(report: Report) -> str:
    """A report as people read it."""
    if not report.proofs:
        return "\n".join([f"Nothing to prove: {report.file} has neither delays nor routes.", *_note_lines(report)])
    details = [*_trouble_lines(report.proofs), *_note_lines(report)]
    used = dict.fromkeys(proof.how for proof in report.proofs)
    return "\n".join(
        [
            _headline(report),
            "",
            *_table(list(_rows(report.proofs))),
            "",
            *(_LEGEND[how] for how in _LEGEND if how in used),
            *(["", *details] if details else []),
        ]
    )


def _headline(report: Report) -> str:
    word = click.style("proved", fg="green") if report.is_proved else click.style("not proved", fg="red")
    failed = sum(not proof.is_proved for proof in report.proofs)
    ways = plural(len(report.proofs), "way")
    counts = f"{failed:,} of {ways} failed" if failed else ways
    where = f"{report.file} → virtual host {report.vhost}, RabbitMQ {report.version}"
    return f"{word}: {visible(where)} ({counts}, {plural(report.sent, 'canary')}, {_rounded(report.took)})"


def _rounded(took: Duration) -> str:
    return str(Duration(max(100, round(took.ms, -2 if took.ms < 10_000 else -3))))


def _rows(proofs: Sequence[Proof]) -> Iterator[tuple[str, ...]]:
    """One for each way; where very many routes are as they should be, one for all of these."""
    plain = [p for p in proofs if p.probe.kind == "route" and p.how == "structure" and p.is_proved and not p.note]
    folded = plain if len(plain) > _MOST_ROUTES else []
    hidden = {id(proof) for proof in folded}
    yield from (_row(proof) for proof in proofs if id(proof) not in hidden)
    if folded:
        yield (click.style("ok", fg="green"), f"{len(folded):,} routes", "-", _WORDS["structure"], "-", "-")


def _row(proof: Proof) -> tuple[str, ...]:
    observed = proof.observed
    return (
        click.style("ok", fg="green") if proof.is_proved else click.style("FAILED", fg="red"),
        _title(proof),
        str(proof.probe.wait),
        _WORDS[proof.how],
        f"{len(observed.sightings)}/{observed.sent}" if observed.sent else "-",
        _lateness(proof.lateness),
    )


def _title(proof: Proof) -> str:
    return shorten(f"{proof.probe.kind} {proof.probe.name}", _LONGEST_NAME)


def _lateness(late: Sequence[int]) -> str:
    if not late:
        return "-"
    first, last = (signed(ms) for ms in (late[0], late[-1]))
    return first if first == last else f"{first} to {last}"


def signed(ms: int) -> str:
    """How late something was; early is less than nothing."""
    return f"-{Duration(-ms)}" if ms < 0 else str(Duration(ms)) if ms else "0ms"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side: words to the left, figures to the right."""
    cells = [_HEADINGS, *rows]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(_HEADINGS))]
    return [_line(row, widths).rstrip() for row in cells]


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    gaps = [" " * (width - len(click.unstyle(cell))) for cell, width in zip(row, widths, strict=True)]
    is_figure = (False, False, True, False, True, True)
    parts = zip(row, gaps, is_figure, strict=True)
    return "  ".join(gap + cell if right else cell + gap for cell, gap, right in parts)


def _trouble_lines(proofs: Sequence[Proof]) -> Iterator[str]:
    for proof in proofs:
        for trouble in proof.troubles:
            yield f"{click.style('Failed:', fg='red')} {_title(proof)}: {visible(trouble.what)} [{trouble.name}]"
            yield f"  fix: {visible(trouble.fix)}"


def _note_lines(report: Report) -> Iterator[str]:
    by_note: dict[str, list[str]] = {}
    for proof in report.proofs:
        if proof.note is not None:
            by_note.setdefault(proof.note, []).append(_title(proof))
    for note, ways in by_note.items():
        yield f"{click.style('Note:', fg='cyan')} {', '.join(ways)}: {visible(note)}"
    if report.unproved:
        what = "not proved is how long messages wait in queues that are no levels, and that they leave"
        yield f"{click.style('Note:', fg='cyan')} {what}: {visible(', '.join(report.unproved))}"
    if report.at_large:
        left = f"{plural(report.at_large, 'canary')} may still come out"
        ending = f", and removes itself when unused for {report.stays_for}" if report.stays_for else ""
        yield f"{click.style('Note:', fg='cyan')} {left}: {report.catcher} stays to catch them{ending}"


def report_json(report: Report) -> dict[str, Any]:
    """A report as programs read it."""
    return {
        "file": report.file,
        "vhost": report.vhost,
        "version": report.version,
        "run": report.run,
        "proved": report.is_proved,
        "took_ms": report.took.ms,
        "sent": report.sent,
        "at_large": report.at_large,
        "not_proved": list(report.unproved),
        "ways": [_proof_json(proof) for proof in report.proofs],
    }


def _proof_json(proof: Proof) -> dict[str, Any]:
    late = proof.lateness
    return {
        "kind": proof.probe.kind,
        "name": proof.probe.name,
        "exchange": proof.probe.exchange,
        "key": proof.probe.key,
        "wait_ms": proof.probe.wait.ms,
        "proved": proof.is_proved,
        "by": _WORDS[proof.how],
        "sent": proof.observed.sent,
        "arrived": len(proof.observed.sightings),
        "lateness_ms": {"least": late[0], "most": late[-1]} if late else None,
        "troubles": [_trouble_json(trouble) for trouble in proof.troubles],
        "note": proof.note,
    }


def _trouble_json(trouble: Trouble) -> dict[str, Any]:
    return {"name": trouble.name, "what": trouble.what, "fix": trouble.fix}
