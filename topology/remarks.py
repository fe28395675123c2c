"""What catches the eye in a delay that was made by hand: the ways in which it loses, hastens or redirects messages."""

from collections.abc import Iterator

from delayctl.topology.live import Live
from delayctl.topology.model import Policy
from delayctl.topology.recognise import Wait
from delayctl.topology.routing import DEFAULT_EXCHANGE

_ALTERNATE_BY_POLICY = "alternate-exchange"


def remarks(wait: Wait, live: Live) -> tuple[str, ...]:
    """What somebody who relies on this wait should know."""
    return (*_on_the_way_out(wait, live), *_on_keeping(wait, live))


def _on_the_way_out(wait: Wait, live: Live) -> Iterator[str]:
    leaves, key = wait.settings.dead_letter_exchange, wait.settings.dead_letter_key
    if leaves == DEFAULT_EXCHANGE:
        yield from _by_default_exchange(wait, key, live)
        return
    exit_ = live.exchanges.get(leaves or "")
    if exit_ is None:
        yield f"its dead-letter exchange {leaves} does not exist: what expires is lost"
        return
    if not wait.ways_out and exit_.alternate is None:
        yield f"nothing that it leads to is bound to {leaves}: what expires is lost"
    elif exit_.alternate is None and not any(map(_may_set_alternate, live.policies)):
        yield f"no safety net: {leaves} has no alternate exchange, so that what expires without a route is lost"
    if key is not None:
        yield f"a dead-letter routing key is set: whatever key a message had, it comes out as {key}"
    elif any(way.source == leaves for way in wait.ways_in):
        yield f"{leaves} leads into it as well as out of it: what comes out with the key that led in is dropped as a cycle"


def _by_default_exchange(wait: Wait, key: str | None, live: Live) -> Iterator[str]:
    if key is None:
        yield "it leaves by the default exchange: to the queue that is called like the message's own key, or nowhere"
    elif key == wait.queue:
        yield "it leads back into itself: what expires is dropped as a cycle"
    elif key not in live.queues:
        yield f"it leads to queue {key}, which does not exist: what expires is lost"
    else:
        yield f"a dead-letter routing key is set: all that expires goes to queue {key}, and has lost its own key"


def _on_keeping(wait: Wait, live: Live) -> Iterator[str]:
    settings = wait.settings
    has_limit = settings.max_length is not None or settings.max_bytes is not None
    if not has_limit:
        yield "no max-length: nothing bounds what waits"
    elif settings.overflow in (None, "drop-head"):
        yield "at its limit the oldest message leaves early (drop-head)"
    if settings.dead_letter_strategy == "at-least-once" and settings.overflow != "reject-publish":
        yield "at-least-once needs overflow reject-publish; without it the broker falls back to at-most-once"
    if settings.expires is not None:
        yield f"unused for {settings.expires} it is deleted, with all that waits in it"
    if not live.queues[wait.queue].durable:
        yield "not durable: it is gone after a restart of the broker"


def _may_set_alternate(policy: Policy) -> bool:
    return policy.apply_to in ("exchanges", "all") and _ALTERNATE_BY_POLICY in dict(policy.definition)
