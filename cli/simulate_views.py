"""What a simulation foretells, as text. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
from delayctl.cli.table import LONGEST_NAME, table
from delayctl.simulator.flow import Limit, limits_of
from delayctl.simulator.flow_counts import Series
from delayctl.simulator.what_if_answer import Account, Answer
from delayctl.simulator.what_if_findings import Finding, bytes_text, fits, rate_text, time_text
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.simulator.what_if_traffic import Span, Stream
from delayctl.topology.capacity import holds
from delayctl.topology.duration import Duration
from delayctl.topology.model import Topology
from delayctl.topology.wording import plural, shorten

_BLOCKS = " ▁▂▃▄▅▆▇█"
_CHART_WIDTH = 60
_MOST_STREAMS = 3
_LEVEL_HEADINGS = (
    "level",
    "arrived",
    "most wait",
    "at",
    "max-length",
    "holds",
    "early",
    "refused",
    "memory",
    "empty at",
)
_QUEUE_HEADINGS = (
    "queue",
    "arrived",
    "most wait",
    "at",
    "consumed",
    "consumers",
    "late (median)",
    "late (most)",
    "empty at",
)
_KEEPING_UP = "keep up"


@dataclass(frozen=True)
class Simulated:
    """A question and its answer; `needed` is the answer with room for all, where there was not enough."""

    file: str
    topology: Topology
    scenario: Scenario
    answer: Answer
    needed: Answer | None
    memory_each: int
    findings: tuple[Finding, ...]

    def limit_of(self, account: Account) -> Limit | None:
        """The tightest limit of a queue."""
        return next(iter(limits_of(account.queue.settings, self.scenario.message_bytes)), None)

    @property
    def waits(self) -> list[tuple[str, Account]]:
        """The levels and steps that messages came to, in the order of the file, then other queues with a TTL."""
        accounts, levels = self.answer.accounts, self.topology.waits
        named = [(level.name, accounts[level.queue]) for level in levels if level.queue in accounts]
        others = [(name, account) for name, account in accounts.items() if name not in self.topology.delay_queues]
        return named + [(name, account) for name, account in others if account.queue.settings.ttl is not None]

    @property
    def targets(self) -> list[tuple[str, Account]]:
        """The queues at the end of the way."""
        return [(name, account) for name, account in self.answer.accounts.items() if account.queue.settings.ttl is None]


def simulate_text(simulated: Simulated) -> str:
    """A simulation as people read it."""
    waits, targets = simulated.waits, simulated.targets
    lines = [_headline(simulated), *_traffic_lines(simulated), *_away_lines(simulated)]
    if waits:
        lines += ["", *table(_LEVEL_HEADINGS, [_level_row(name, a, simulated) for name, a in waits])]
    if targets:
        lines += ["", *table(_QUEUE_HEADINGS, [_queue_row(name, a, simulated) for name, a in targets])]
    if any((account.late.least or 0) < 0 for _, account in targets):
        lines.append("late: taken after the time that was meant; below zero is early.")
    if waited := [(name, account) for name, account in (*waits, *targets) if account.peak]:
        lines += ["", *_charts(waited, simulated), "", _memory_line(simulated)]
    if simulated.findings:
        lines += ["", *(line for finding in simulated.findings for line in _finding_lines(finding))]
    return "\n".join(lines)


def _headline(simulated: Simulated) -> str:
    is_fitting = fits(simulated.findings)
    word = click.style("fits", fg="green") if is_fitting else click.style("does not fit", fg="red")
    answer = simulated.answer
    times = f"{Duration(answer.traffic_ends)} of traffic, all over after {time_text(answer.end)}"
    return f"{word}: {simulated.file}, {times}, in steps of {Duration(answer.step)}"


def _traffic_lines(simulated: Simulated) -> Iterator[str]:
    """What is published; streams that are alike are told together."""
    alike: dict[str, list[str]] = {}
    for stream in simulated.scenario.streams:
        where = f"{_key_text(stream)} to {stream.exchange or 'the default exchange'}"
        alike.setdefault(_arrivals_text(stream, simulated.answer.traffic_ends), []).append(where)
    for arrivals, places in alike.items():
        shown = [
            *places[:_MOST_STREAMS],
            *([f"{len(places) - _MOST_STREAMS} more"] if len(places) > _MOST_STREAMS else []),
        ]
        yield f"  {arrivals}{' each' if len(places) > 1 else ''} of {', '.join(shown)}"


def _key_text(stream: Stream) -> str:
    if stream.is_made_up:
        return f"messages that have no route (the key {stream.message.key} is made up)"
    return shorten(stream.message.key) or "(no key)"


def _arrivals_text(stream: Stream, traffic_ends: int) -> str:
    if stream.lumps:
        return f"{plural(sum(lump.count for lump in stream.lumps), 'message')} at {plural(len(stream.lumps), 'time')}"
    if len(stream.stretches) > 4:
        most = max(stretch.rate for stretch in stream.stretches)
        return f"{len(stream.stretches):,} rates up to {rate_text(most)}"
    if [stretch.span for stretch in stream.stretches] == [Span(0, traffic_ends)]:
        return rate_text(stream.stretches[0].rate)
    return ", ".join(f"{rate_text(stretch.rate)} {_span_text(stretch.span)}" for stretch in stream.stretches)


def _away_lines(simulated: Simulated) -> Iterator[str]:
    """Who is away when, as long as there is anything to miss."""
    scenario, end = simulated.scenario, simulated.answer.end
    for span in (span for span in scenario.broker_away if span.start < end):
        meanwhile = "give up" if scenario.gives_up else "hold back"
        yield f"  the broker is away {_span_text(span)}; publishers {meanwhile} what comes meanwhile"
    for queue, spans in scenario.consumers_away.items():
        for span in (span for span in spans if span.start < end):
            yield f"  {f'consumers of {queue}' if queue else 'all consumers'} are away {_span_text(span)}"


def _span_text(span: Span) -> str:
    return f"from {Duration(span.start)} to {Duration(span.end)}"


def _level_row(name: str, account: Account, simulated: Simulated) -> tuple[str, ...]:
    ttl, limit = account.queue.settings.ttl, simulated.limit_of(account)
    return (
        name,
        f"{account.arrived:,}",
        f"{account.peak:,}",
        time_text(account.peak_at),
        "-" if limit is None else f"{limit.messages:,}{' (max_bytes)' * (limit.setting == 'max_bytes')}",
        rate_text(holds(limit.messages, ttl)) if limit and limit.messages and ttl else "-",
        _counted(account.left_early.count, account.arrived),
        _counted(account.refused.count, account.arrived),
        bytes_text(account.peak * simulated.memory_each),
        _empty(account),
    )


def _queue_row(name: str, account: Account, simulated: Simulated) -> tuple[str, ...]:
    rate = simulated.scenario.consumers_of(name)
    consumers = _KEEPING_UP if rate is None else rate_text(rate)
    return (
        name,
        f"{account.arrived:,}",
        f"{account.peak:,}",
        time_text(account.peak_at) if account.peak else "-",
        f"{account.consumed:,}",
        consumers if account.consumed else "-",
        _lateness(account.late.median),
        _lateness(account.late.most),
        _empty(account),
    )


def _counted(count: int, total: int) -> str:
    return click.style(f"{count:,} ({100 * count / total:.1f}%)", fg="red") if count else "0"


def _lateness(ms: int | None) -> str:
    if ms is None:
        return "-"
    return f"-{time_text(-ms)}" if ms < 0 else time_text(ms)


def _empty(account: Account) -> str:
    if account.waiting:
        return "never"
    return "-" if account.empty_at is None else time_text(account.empty_at)


def _charts(accounts: Sequence[tuple[str, Account]], simulated: Simulated) -> Iterator[str]:
    """How many wait over time, each queue against its own most."""
    end = simulated.answer.end
    width = min(max(len(name) for name, _ in accounts), LONGEST_NAME)
    for name, account in accounts:
        limit = simulated.limit_of(account)
        most = f"{account.peak:,}" + (f" of {limit.messages:,}" if limit is not None else "")
        yield f"{shorten(name, LONGEST_NAME).ljust(width)}  {chart(account.series, end)}  {most}"
    yield f"{' ' * width}  0s{time_text(end).rjust(_CHART_WIDTH - 2)}"


def chart(series: Series, end: int) -> str:
    """A line of blocks, as high as what waits."""
    most, points = max(series.most), len(series.most)
    if not most or not end:
        return _BLOCKS[0] * _CHART_WIDTH
    bars = []
    for column in range(_CHART_WIDTH):
        first = column * end // _CHART_WIDTH // series.interval
        last = max(first, ((column + 1) * end // _CHART_WIDTH - 1) // series.interval)
        height = max(series.most[min(first, points - 1) : min(last, points - 1) + 1])
        # What waits is seen, however few.
        bars.append(_BLOCKS[-(-height * (len(_BLOCKS) - 1) // most)])
    return "".join(bars)


def _memory_line(simulated: Simulated) -> str:
    answer, each, body = simulated.answer, simulated.memory_each, simulated.scenario.message_bytes
    is_parked = any(account.waiting for _, account in simulated.targets)
    line = (
        f"Memory: {bytes_text(answer.peak * each)} at most, when {answer.peak:,} wait at {time_text(answer.peak_at)}"
        f"{', those parked for good included' if is_parked else ''},"
        f" assuming {each:,} bytes a message besides its body (--memory-per-message)."
    )
    if body is None:
        return line
    return f"{line}\nBodies: {bytes_text(answer.peak * body)} then, at {bytes_text(body)} each; mostly on disk."


def _finding_lines(finding: Finding) -> Iterator[str]:
    word = click.style("Trouble:", fg="red") if finding.is_trouble else click.style("Note:", fg="cyan")
    yield f"{word} {finding.what}"
    if finding.fix:
        yield f"  fix: {finding.fix}"
