"""Why nobody takes what has expired in an at-least-once queue, as far as the broker shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

from delayctl.topology.examination import Examination
from delayctl.topology.figures import Figures
from delayctl.topology.routing import DEFAULT_EXCHANGE
from delayctl.topology.status import LevelStatus
from delayctl.topology.verdict import BROKEN_STATES
from delayctl.topology.wording import command, plural


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps expired messages from being taken, and how to take it away."""

    text: str
    fix: str
    commands: tuple[str, ...] = ()


def obstacles(examination: Examination, level: LevelStatus) -> Iterator[Obstacle]:
    """All that is seen, what is surest first."""
    exit = level.settings.dead_letter_exchange or DEFAULT_EXCHANGE
    apply = command("delayctl", "apply", examination.source)
    if level.exit_is_missing:
        yield Obstacle(f"exchange {exit}, which it hands on to, is not there", "create it", (apply,))
    elif exit != DEFAULT_EXCHANGE:
        yield from _broken_targets(examination, exit)
        yield from _ways_out(examination, exit, apply)


def _broken_targets(examination: Examination, exit: str) -> Iterator[Obstacle]:
    for target in _behind(examination, exit):
        figures = examination.figures.get(target, Figures())
        settings = examination.network.queues[target].settings
        vhost = examination.status.vhost
        if figures.state in BROKEN_STATES:
            quorum = command("rabbitmq-queues", "quorum_status", "--vhost", vhost, target)
            yield Obstacle(f"{target}, behind it, is {figures.state}", "bring back the nodes that hold it", (quorum,))
        limit, waiting = settings.max_length, figures.waiting
        if limit is not None and waiting is not None and waiting >= limit and settings.overflow == "reject-publish":
            text = f"{target}, behind it, is full with {plural(waiting, 'message')} and refuses more"
            show = command("rabbitmqctl", "list_queues", "-p", vhost, "name", "messages", "consumers")
            yield Obstacle(text, f"let consumers of {target} catch up, or raise its limit", (show,))


def _ways_out(examination: Examination, exit: str, apply: str) -> Iterator[Obstacle]:
    exchange = examination.network.exchanges.get(exit)
    if exchange is None or exchange.alternate is not None:
        return
    keys = sorted({binding.key for binding in examination.network.bindings_from.get(exit, ())})
    leads = f"leads on for {', '.join(map(repr, keys))} alone" if keys else "leads nowhere"
    text = f"exchange {exit} {leads}, and has no alternate exchange for the rest"
    if exit == examination.desired.exit:
        yield Obstacle(text, "put its alternate exchange back, which catches what has no route", (apply,))
        return
    vhost = examination.status.vhost
    show = command("rabbitmqctl", "list_bindings", "-p", vhost, "source_name", "routing_key", "destination_name")
    yield Obstacle(text, "bind a queue for what comes out, or give the exchange an alternate that parks it", (show,))


def _behind(examination: Examination, exit: str) -> list[str]:
    """The queues right behind an exchange."""
    ways = examination.network.bindings_from.get(exit, ())
    return sorted({way.destination for way in ways if way.kind == "queue"} & examination.network.queues.keys())
