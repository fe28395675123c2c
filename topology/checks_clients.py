"""Checks of the clients: who is kept from publishing, who does not listen, who is missing."""

from collections.abc import Iterator

from delayctl.topology.diagnosis import Check, Symptom, enumerated, reasons, symptom_of
from delayctl.topology.examination import Examination
from delayctl.topology.findings import Severity
from delayctl.topology.verdict import unread_targets
from delayctl.topology.wording import command, plural


def blocked(examination: Examination) -> Iterator[Symptom]:
    """H501: who feels an alarm."""
    clients = examination.clients.blocked
    if clients:
        message = f"{plural(len(clients), 'connection')} can't publish: the broker takes nothing from them for now"
        show = command("rabbitmqctl", "list_connections", "name", "user", "state")
        fix = "end the alarm (H101, H102): they go on by themselves"
        yield Symptom("", message, fix, (show,), (enumerated(map(str, clients)),))


def unconfirmed(examination: Examination) -> Iterator[Symptom]:
    """H502: who publishes without listening."""
    clients = examination.clients.unconfirmed
    if clients:
        message = f"{plural(len(clients), 'connection')} publish{'es' if len(clients) == 1 else ''} without confirms"
        fix = "let them use publisher confirms and mandatory, as DelayPublisher and 'delayctl publish' do"
        show = command("rabbitmqctl", "list_channels", "connection", "number", "user", "confirm")
        yield Symptom("", message, fix, (show,), (enumerated(map(str, clients)),))


def unread(examination: Examination) -> Iterator[Symptom]:
    """H503: nobody is there for what comes out."""
    for reason in reasons(unread_targets, examination):
        show = command("rabbitmqctl", "list_queues", "-p", examination.status.vhost, "name", "messages", "consumers")
        yield symptom_of(reason, show, fix="start its consumers, if there should be any")


CHECKS: tuple[Check, ...] = (
    Check(
        "H501",
        "blocked-connections",
        Severity.WARNING,
        "Publishers are blocked.",
        "A broker that is short of memory or disk reads nothing more from who publishes.",
        blocked,
    ),
    Check(
        "H502",
        "unconfirmed",
        Severity.WARNING,
        "Somebody publishes without confirms.",
        "What a full queue refuses, what has no route, and what is lost with a connection is lost without a word.",
        unconfirmed,
    ),
    Check(
        "H503",
        "unread",
        Severity.INFO,
        "Nobody consumes a queue behind a wait.",
        "What has waited stays there.",
        unread,
    ),
)
