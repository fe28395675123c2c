"""From the options of simulate to a scenario; what does not go together is said before anything is run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from delayctl.cli.simulate_arrivals import Lumps, even_interval
from delayctl.cli.simulate_options import read_bursts, read_duration, read_rates, read_size, read_span, read_spans
from delayctl.cli.simulate_traffic import Asked, journey_of, streams_of
from delayctl.simulator.what_if_answer import Answer
from delayctl.simulator.what_if_findings import Finding
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.simulator.what_if_steps import Work
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.routing import Network
from delayctl.topology.scene import Scene
from delayctl.topology.wording import did_you_mean, quoted

_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000


def check_together(options: Mapping[str, Any]) -> None:
    """Raise BadOption where options exclude each other."""
    has_rates = options["rates"] or options["bursts"] or options["length"]
    if options["arrivals"] is not None and has_rates:
        raise BadOption("--arrivals goes with neither --rate nor --burst nor --for", fix="leave out one or the other")
    if options["is_spread"] and options["arrivals"] is None:
        raise BadOption("--spread is for --arrivals", fix="leave it out: rates are even anyway")
    if options["exchange"] is not None and options["levels"]:
        raise BadOption("--exchange and --level exclude each other", fix="leave out one of them")
    if options["give_up"] and not options["away"]:
        raise BadOption("--give-up is for --away", fix="leave it out, or say when the broker is away: --away 10m+5m")


def asked_of(options: Mapping[str, Any], lumps: Mapping[str | None, Lumps]) -> Asked:
    """What the options say of the traffic, or BadOption."""
    rates, bursts = read_rates("--rate", options["rates"]), read_bursts(options["bursts"])
    length = read_duration("--for", options["length"]) if options["length"] is not None else None
    if length == 0:
        raise BadOption("--for 0s lets nothing happen", fix="choose more")
    return Asked(
        rates=rates,
        bursts=bursts,
        lumps=lumps,
        is_spread=options["is_spread"],
        length=length,
        key=options["key"],
        exchange=options["exchange"],
        levels=options["levels"],
        delay=read_duration("--delay", options["delay"]) if options["delay"] is not None else None,
    )


def scenario_of(scene: Scene, network: Network, asked: Asked, options: Mapping[str, Any], most: int) -> Scenario:
    """The question that the options ask, or DelayctlError; one that makes more than `most` comings and goings is refused."""
    streams = streams_of(scene, network, asked)
    consume = read_rates("--consume", options["consume"])
    consumers_away = read_spans("--consumer-away", options["consumer_away"])
    for option, names in (("--consume", consume), ("--consumer-away", consumers_away)):
        _check_queues(scene, network, option, names)
    scenario = Scenario(
        streams,
        consume={name: rate for name, rate in consume.items() if name is not None},
        consume_others=consume.get(None),
        broker_away=tuple(read_span("--away", text) for text in options["away"]),
        consumers_away=consumers_away,
        gives_up=options["give_up"],
        message_bytes=read_size("--message-size", options["message_size"]) if options["message_size"] else None,
    )
    return replace(scenario, step=_step(network, scenario, options["step"], most))


def _check_queues(scene: Scene, network: Network, option: str, names: Iterable[str | None]) -> None:
    for name in names:
        if name is not None and name not in network.queues:
            guess = did_you_mean(name, network.queues)
            raise BadOption(f"{option}: there is no queue {quoted(name)}{guess}", fix="name a queue of the file")
        if name in scene.topology.delay_queues:
            what = f"{option}: nobody consumes from the delay queue {quoted(name or '')}"
            raise BadOption(f"{what}, messages wait there until their time is up", fix="name the queue behind it")


def _step(network: Network, scenario: Scenario, text: str | None, most: int) -> int:
    ways = [journey_of(network, stream) for stream in scenario.streams]
    stays = [[stay for passage in way.passages for stay in passage.stays] for way in ways]
    waits = [stay.wait.ms for found in stays for stay in found if stay.wait is not None]
    work = Work(
        scenario.traffic_ends + max(way.total.ms for way in ways),
        [(stream.count, max(1, len(found) - 1)) for stream, found in zip(scenario.streams, stays, strict=True)],
        is_paced=bool(scenario.consume or scenario.consume_others),
        most=most,
    )
    usual = work.step(waits)
    if text is not None:
        return _step_given(work, text, usual)
    if work.is_too_much(usual):
        what = f"{Duration(scenario.traffic_ends)} of traffic are too long to be run in steps of {Duration(usual)}"
        why = f", and a wait of {Duration(min(waits))} needs them as short as that" if waits else ""
        shorter = _rounded_down(work.longest(usual) - max(way.total.ms for way in ways))
        fix = f"choose --for {shorter} or less: what repeats itself says nothing new; or give a longer --step"
        raise DelayctlError(f"{what}{why}", fix=fix)
    return usual


def _rounded_down(ms: int) -> Duration:
    """In whole days, or in hours, minutes or seconds where it is less than one."""
    unit = next((unit for unit in (_DAY, _HOUR, _MINUTE) if ms >= unit), _SECOND)
    return Duration(max(1, ms // unit) * unit)


def _step_given(work: Work, text: str, usual: int) -> int:
    step = read_duration("--step", text)
    if step == 0 or work.is_too_much(step):
        fix = "choose a longer one" if work.is_too_much(usual) else f"leave it out, or choose {Duration(usual)} or more"
        raise BadOption(f"--step {text} makes too many steps of this run", fix=fix)
    return step


def notes(asked: Asked, scenario: Scenario, answer: Answer, arrivals: str | None) -> Iterator[Finding]:
    """What the answer rests on and a reader may not expect."""
    intervals = {even_interval(lumps) for lumps in asked.lumps.values()} - {None}
    if not asked.is_spread and any(interval is not None and interval > scenario.step for interval in intervals):
        apart = Duration(max(interval for interval in intervals if interval is not None))
        yield Finding(
            f"the lines of {arrivals} are {apart} apart and taken as lumps; --spread takes them as counts of intervals"
        )
    waits = [a.queue.settings.ttl.ms for a in answer.accounts.values() if a.queue.settings.ttl is not None]
    coarse = [wait for wait in waits if _is_coarse(scenario.step, wait)]
    if coarse:
        what = f"steps of {Duration(scenario.step)} are coarse for a wait of {Duration(min(coarse))}"
        yield Finding(f"{what}: more seem to wait than would; --step makes them finer")
    yield from _too_late(scenario, answer.end)
    bounded = [name for name, account in answer.accounts.items() if account.queue.settings.max_bytes is not None]
    if bounded and scenario.message_bytes is None:
        yield Finding(f"max_bytes of {', '.join(bounded)} is not looked at without --message-size")


def _is_coarse(step: int, wait: int) -> bool:
    """Say whether a wait is rounded up by much, or no longer than a step or two."""
    return wait > 0 and (2 * step > wait or (10 * step > wait and wait % step > 0))


def _too_late(scenario: Scenario, end: int) -> Iterator[Finding]:
    spans = [("--away", span) for span in scenario.broker_away]
    spans += [("--consumer-away", span) for found in scenario.consumers_away.values() for span in found]
    for option, span in spans:
        if span.start >= end:
            when = f"{Duration(span.start)}+{Duration(span.end - span.start)}"
            yield Finding(f"{option} {when} changes nothing: all is over after {Duration(end)}")
