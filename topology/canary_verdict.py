"""What became of canaries, held against what was promised: one function per trouble."""

from collections.abc import Mapping, Sequence
from typing import Any

from delayctl.topology.canary import CANARY, Flight, How, Observed, Probe, Proof, Sighting, Task, Trouble
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Figures
from delayctl.topology.wording import argument, plural, quoted

_OF_TIME = ("early", "late")
GRAIN_MS = 1  # Brokers count in whole milliseconds, so that a wait of 300 may end after 299.6.


def prove(
    task: Task,
    observed: Observed | None,
    *,
    run: str,
    max_lateness: Duration,
    figures: Mapping[str, Figures],
    file: str,
) -> Proof:
    """What is known of a way in the end; `figures` are those of the queues after the canaries were waited for."""
    if task.flight is None or observed is None:
        return Proof(task.probe, "structure", (*task.known, *task.expected), note=task.note)
    seen = judge(task.flight, observed, run=run, max_lateness=max_lateness, file=file)
    missing = _missing(task.probe, observed, figures, file)
    troubles = (*task.known, *_explained(task, (*seen, *((missing,) if missing else ()))))
    how: How = "canaries" if task.flight.hasten_ms is None else "hastened"
    return Proof(task.probe, how, troubles, observed, task.note)


def _explained(task: Task, found: tuple[Trouble, ...]) -> tuple[Trouble, ...]:
    """What canaries have met, with the cause where the objects on the broker tell it."""
    causes = {trouble.name: trouble for trouble in task.expected}
    refusal = next((cause for name, cause in causes.items() if name not in _OF_TIME), None)
    told = [
        refusal if refusal and each.name == "refused" else _with_fix_of(causes.get(each.name), each) for each in found
    ]
    # A slow broker makes up for a wait that is too short; it is too short all the same.
    unseen = [cause for name, cause in causes.items() if name in _OF_TIME and name not in {each.name for each in told}]
    return (*told, *unseen)


def _with_fix_of(cause: Trouble | None, found: Trouble) -> Trouble:
    return Trouble(found.name, found.what, cause.fix) if cause else found


def judge(flight: Flight, observed: Observed, *, run: str, max_lateness: Duration, file: str) -> tuple[Trouble, ...]:
    """What speaks against a way; of canaries that did not come nothing is said here."""
    probe, seen = flight.probe, observed.sightings
    timed = (_early(probe, seen, file), _late(probe, seen, max_lateness)) if flight.hasten_ms is None else ()
    found = (
        _refused(probe, observed, file),
        _unconfirmed(observed),
        _changed_keys(probe, seen),
        _changed_headers(probe, seen, run),
        _not_expired(probe, seen),
        *timed,
        _doubled(observed, file),
    )
    return tuple(trouble for trouble in found if trouble)


def _refused(probe: Probe, observed: Observed, file: str) -> Trouble | None:
    if not observed.refusals:
        return None
    what = f"the broker did not take {_of(len(observed.refusals), observed.sent)}: {observed.refusals[0]}"
    may = f"publish (delayctl permissions {argument(file)} --role verifier)"
    if probe.kind == "route":  # A verifier makes no messages of services.
        may = f"write to {quoted(probe.exchange)}, as the role verifier may where that is a delay; without --through-routes nothing is sent there"
    fix = f"see that the queue has room (delayctl status {argument(file)}), and that the user may {may}"
    return Trouble("refused", what, fix)


def _unconfirmed(observed: Observed) -> Trouble | None:
    if not observed.unconfirmed:
        return None
    count = _of(observed.unconfirmed, observed.sent)
    if observed.is_blocked:
        what = f"the broker takes no messages now, by an alarm of memory or disk: {count} not taken"
        return Trouble("blocked", what, "see what the nodes lack: rabbitmq-diagnostics alarms")
    what = f"the broker has not confirmed {count} in time"
    return Trouble("unconfirmed", what, "see whether the queue is running and has its quorum, or raise --timeout")


def _changed_keys(probe: Probe, sightings: Sequence[Sighting]) -> Trouble | None:
    changed = [seen.key for seen in sightings if seen.key != probe.key]
    if not changed:
        return None
    count = _of(len(changed), len(sightings))
    what = f"{count} came out with another key: {quoted(changed[0])} instead of {quoted(probe.key)}"
    return Trouble("key-changed", what, "look for what takes messages out of the queue and sends them on")


def _changed_headers(probe: Probe, sightings: Sequence[Sighting], run: str) -> Trouble | None:
    expected = {**probe.headers, CANARY: run}
    changed = {name for seen in sightings for name in expected if seen.headers.get(name) != expected[name]}
    if not changed:
        return None
    what = f"headers were lost or changed on the way: {', '.join(sorted(changed))}"
    return Trouble("headers-changed", what, "look for what takes messages out of the queue and sends them on")


def _not_expired(probe: Probe, sightings: Sequence[Sighting]) -> Trouble | None:
    ways_out = [way for seen in sightings if (way := _other_way_out(probe, seen.headers))]
    if not ways_out:
        return None
    count = _of(len(ways_out), len(sightings))
    if "maxlen" in ways_out:
        what = f"{count} pushed out early by what came behind: the queue is full"
        return Trouble("pushed-out", what, "raise max_length, or set overflow: reject-publish")
    what = f"{count} did not come out because the time was up: {ways_out[0]}"
    return Trouble("not-expired", what, "look for consumers of the delay queue, which send messages on themselves")


def _other_way_out(probe: Probe, headers: Mapping[str, Any]) -> str | None:
    """How a canary left a queue that it had to expire in, where that was no expiry."""
    deaths = [death for death in headers.get("x-death") or () if isinstance(death, dict)]
    other = next((str(death.get("reason")) for death in deaths if death.get("reason") != "expired"), None)
    if other is not None:
        return other
    # Not by their names: in the middle of a change a level waits in another queue.
    return "the broker has no record that it waited" if len(deaths) < len(probe.queues) else None


def _early(probe: Probe, sightings: Sequence[Sighting], file: str) -> Trouble | None:
    grain = GRAIN_MS * max(1, len(probe.queues))
    early = [-late for seen in sightings if (late := seen.late_ms(probe.wait)) < -grain]
    if not early:
        return None
    waited = Duration(probe.wait.ms - max(early))
    what = f"{_of(len(early), len(sightings))} came early: after {waited} instead of {probe.wait}"
    return Trouble("early", what, f"see what shortens the wait: delayctl status {argument(file)}")


def _late(probe: Probe, sightings: Sequence[Sighting], most: Duration) -> Trouble | None:
    late = [ms for seen in sightings if (ms := seen.late_ms(probe.wait)) > most.ms]
    if not late:
        return None
    what = f"{_of(len(late), len(sightings))} came too late: by {Duration(max(late))}, and {most} is allowed"
    fix = (
        "see whether an older message with a longer TTL was in front, or the broker is busy; else raise --max-lateness"
    )
    return Trouble("late", what, fix)


def _doubled(observed: Observed, file: str) -> Trouble | None:
    if not observed.twice:
        return None
    what = f"{_of(observed.twice, observed.sent)} came more than once"
    return Trouble(
        "doubled", what, f"look for a second way, and for consumers of the delay queue: delayctl plan {argument(file)}"
    )


def _missing(probe: Probe, observed: Observed, figures: Mapping[str, Figures], file: str) -> Trouble | None:
    if not observed.missing:
        return None
    why, fix = why_missing(probe, figures, file) or (
        "the broker does not say where they are",
        f"see what else takes messages there: delayctl status {argument(file)}",
    )
    return Trouble("missing", f"{_of(observed.missing, observed.sent)} did not come in time: {why}", fix)


def why_missing(probe: Probe, figures: Mapping[str, Figures], file: str) -> tuple[str, str] | None:
    """Say what became of canaries that did not come out, and what to do, as far as their queues tell."""
    reasons = (_why_missing(name, figures.get(name), file) for name in probe.queues)
    return next((reason for reason in reasons if reason), None)


def _why_missing(queue: str, figures: Figures | None, file: str) -> tuple[str, str] | None:
    if figures is None:
        return f"{queue} is gone, and they with it", f"declare it again: delayctl apply {argument(file)}"
    if figures.consumers:
        who = plural(figures.consumers, "consumer")
        return f"{queue} has {who}, and nobody may consume from a delay queue", "stop it, or let it read another queue"
    if figures.state not in ("", "running"):
        return f"{queue} is {figures.state}", "bring back the node or the majority that it needs"
    if figures.dead_lettering:
        stuck = plural(figures.dead_lettering, "message")
        return (
            f"{queue} can't get rid of {stuck} that it owes to the exit",
            f"see what keeps them there: delayctl doctor {argument(file)}",
        )
    if figures.waiting:
        waiting = plural(figures.waiting, "message")
        return (
            f"{waiting} still in {queue}, the first perhaps with a longer TTL",
            "raise --timeout, or wait until it has left",
        )
    return None


def _of(some: int, all_: int) -> str:
    return f"{some:,} of {plural(all_, 'canary')}"
