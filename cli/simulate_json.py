"""What a simulation foretells, for programs. Pure: nothing is read, nothing is printed."""

from typing import Any

from delayctl.cli.simulate_views import Simulated
from delayctl.simulator.flow_counts import Spread
from delayctl.simulator.what_if_answer import Account, Occurrence
from delayctl.simulator.what_if_findings import fits
from delayctl.simulator.what_if_traffic import Span, Stream


def simulate_json(simulated: Simulated) -> dict[str, Any]:
    """A simulation as programs read it; times are milliseconds from the beginning."""
    answer, scenario = simulated.answer, simulated.scenario
    return {
        "fits": fits(simulated.findings),
        "step_ms": answer.step,
        "traffic_ends_ms": answer.traffic_ends,
        "end_ms": answer.end,
        "published": answer.published,
        "held_back": answer.held.count,
        "given_up": answer.failed.count,
        "most_waiting": {"count": answer.peak, "at_ms": answer.peak_at},
        "memory": _memory_json(simulated),
        "streams": [_stream_json(stream) for stream in scenario.streams],
        "broker_away": [_span_json(span) for span in scenario.broker_away],
        "consumers_away": [
            {"queue": queue, **_span_json(span)} for queue, spans in scenario.consumers_away.items() for span in spans
        ],
        "levels": [_wait_json(name, account, simulated) for name, account in simulated.waits],
        "queues": [_target_json(name, account, simulated) for name, account in simulated.targets],
        "reached_no_queue": dict(answer.ends),
        "findings": [{"trouble": f.is_trouble, "what": f.what, "fix": f.fix} for f in simulated.findings],
    }


def _memory_json(simulated: Simulated) -> dict[str, Any]:
    each, body, peak = simulated.memory_each, simulated.scenario.message_bytes, simulated.answer.peak
    return {
        "bytes_per_message": each,
        "most_bytes": peak * each,
        "bodies_most_bytes": None if body is None else peak * body,
    }


def _stream_json(stream: Stream) -> dict[str, Any]:
    return {
        "exchange": stream.exchange,
        "key": stream.message.key,
        "key_is_made_up": stream.is_made_up,
        "rates": [{**_span_json(s.span), "per_second": float(s.rate.per_second)} for s in stream.stretches],
        "messages": sum(lump.count for lump in stream.lumps) if stream.lumps else None,
    }


def _span_json(span: Span) -> dict[str, Any]:
    return {"from_ms": span.start, "to_ms": span.end}


def _wait_json(name: str, account: Account, simulated: Simulated) -> dict[str, Any]:
    settings, queue = account.queue.settings, account.queue.name
    assert settings.ttl is not None
    run = simulated.needed or simulated.answer
    needed = run.accounts[queue].peak if queue in run.accounts else account.peak
    early, limit, body = account.early, simulated.limit_of(account), simulated.scenario.message_bytes
    return {
        "level": name,
        "ttl_ms": settings.ttl.ms,
        "overflow": settings.overflow or "drop-head",
        "holds_per_second": None if limit is None else limit.messages * 1000 / max(settings.ttl.ms, 1),
        "limited_by": None if limit is None else limit.setting,
        **_account_json(account, simulated),
        "needed_max_length": needed,
        "needed_max_bytes": None if body is None else needed * body,
        "left_on_time": account.expired,
        "early": {**_occurrence_json(account.left_early, account), **_spread_json(early)},
        "consumed": account.consumed,
    }


def _target_json(name: str, account: Account, simulated: Simulated) -> dict[str, Any]:
    rate = simulated.scenario.consumers_of(name)
    return {
        **_account_json(account, simulated),
        "consumed": account.consumed,
        "consumers_per_second": None if rate is None else float(rate.per_second),
        "late": {"count": account.late.above(0).total, **_spread_json(account.late)},
        "longest_wait_ms": account.longest_wait,
        "pushed_out": _occurrence_json(account.left_early, account),
    }


def _account_json(account: Account, simulated: Simulated) -> dict[str, Any]:
    return {
        "queue": account.queue.name,
        "max_length": account.queue.settings.max_length,
        "max_bytes": account.queue.settings.max_bytes,
        "arrived": account.arrived,
        "most_waiting": {"count": account.peak, "at_ms": account.peak_at},
        "waiting_when_traffic_ends": account.waiting_when_traffic_ends,
        "waiting_at_the_end": account.waiting,
        "full_from_ms": account.full_from,
        "empty_at_ms": None if account.waiting else account.empty_at,
        "memory_most_bytes": account.peak * simulated.memory_each,
        "refused": _occurrence_json(account.refused, account),
        "lost": _occurrence_json(account.lost, account),
        "backlog": {"interval_ms": account.series.interval, "most": account.series.most},
    }


def _occurrence_json(occurrence: Occurrence, account: Account) -> dict[str, Any]:
    return {
        "count": occurrence.count,
        "share": round(occurrence.count / account.arrived, 6) if account.arrived else 0.0,
        "first_ms": occurrence.first,
        "last_ms": occurrence.last,
    }


def _spread_json(spread: Spread) -> dict[str, Any]:
    return {"least_ms": spread.least, "median_ms": spread.median, "most_ms": spread.most}
