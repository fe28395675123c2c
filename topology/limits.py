"""Limits that an administrator set on a broker, told by RabbitMQ's texts (3.10 to 4.3), and how they are raised."""

import json
import re

from delayctl.topology.errors import NoMoreConnections, Refused
from delayctl.topology.wording import command

# A name may have any of these words in it, so a text is known by its beginning and its end.
_CONNECTIONS = re.compile(
    r"NOT_ALLOWED - (?P<what>(?:access to vhost '.*' refused for user '.*'|connection refused(?: for user '.*')?): "
    r"(?P<whose>vhost |user |node )?connection limit \((?P<limit>\d+)\) is reached)"
)
_CHANNELS = re.compile(
    r"NOT_ALLOWED - (?P<what>number of channels opened .* has reached the maximum allowed (?:user )?limit of \(?[\d,]+\)?)"
)
_QUEUES = re.compile(
    r"(?P<what>cannot declare queue '(?P<queue>.*)': queue limit in (?P<whose>vhost '.*'|cluster) \((?P<limit>\d+)\) is reached)"
)


_MORE = 10  # So many connections apply has at most; it can do with two.


def connection_limit(text: str, vhost: str, user: str) -> NoMoreConnections | None:
    """Our error for a connection, or a channel, that is one too many; None where the text is about something else."""
    if channels := _CHANNELS.search(text):
        fix = "close some, or let an administrator raise the limit of channels"
        return NoMoreConnections(f"the broker takes no more channels: {channels['what']}", fix=fix)
    found = _CONNECTIONS.search(text)
    if not found:
        return None
    more = int(found["limit"]) + _MORE
    match found["whose"]:
        case "user ":
            raised = command("rabbitmqctl", "set_user_limits", user, json.dumps({"max-connections": more}))
        case "node ":
            raised = f"connection_max = {more} in rabbitmq.conf"
        case _:
            raised = _raised_in(vhost, "max-connections", more)
    fix = f"close some, or let an administrator raise the limit: {raised}"
    return NoMoreConnections(f"the broker takes no more connections: {found['what']}", fix=fix)


def queue_limit(text: str, vhost: str, code: int | None) -> Refused | None:
    """Our error for a queue that is one too many; None where the text is about something else."""
    found = _QUEUES.search(text)
    if not found:
        return None
    more = int(found["limit"]) + 1
    in_conf = f"cluster_queue_limit = {more} in rabbitmq.conf"
    raised = in_conf if found["whose"] == "cluster" else _raised_in(vhost, "max-queues", more)
    fix = f"delete a queue that nobody needs, or let an administrator raise the limit by one at least: {raised}"
    return Refused(found["what"], code=code, fix=fix)


def _raised_in(vhost: str, name: str, value: int) -> str:
    # The command forgets the limits that it does not name.
    limit = command("rabbitmqctl", "set_vhost_limits", "-p", vhost, json.dumps({name: value}))
    return f"{limit}, with the other limits that this virtual host has"
