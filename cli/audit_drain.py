"""Draining a queue for an audit: what lies there is recorded, and only then taken."""

from pathlib import Path

from delayctl.cli.arrivals import Arrival
from delayctl.cli.tail import Tail
from delayctl.consumers.recorder import Recorder, record_line
from delayctl.publishers.contract import LEVEL
from delayctl.topology.access import Access

_PREFETCH, _AT_ONCE = 400, 200
_IDLE_S = 2.0


def drain(access: Access, queue: str, folder: Path) -> int:
    """Take everything out of a queue into a record in `folder`, until nothing has come for a while; answers how many."""
    count = tag = 0
    with Tail(access, queue, prefetch=_PREFETCH) as tail, Recorder(folder) as recorder:
        for tag, arrival in tail.deliveries(_IDLE_S):
            recorder.note_line(arrival_line(arrival, drained=True))
            count += 1
            if count % _AT_ONCE == 0:
                recorder.flush()
                tail.acknowledge(tag)
        if count % _AT_ONCE:
            recorder.flush()
            tail.acknowledge(tag)
    return count


def arrival_line(arrival: Arrival, *, drained: bool = False) -> str:
    """The line of a record for a message that came."""
    return record_line(
        arrival.message_id,
        queue=arrival.queue,
        routing_key=arrival.key,
        received_at=arrival.arrived_ms,
        due=arrival.due_ms,
        level=arrival.headers.get(LEVEL),
        attempt=arrival.attempt,
        redelivered=arrival.redelivered,
        drained=drained,
    )
