"""The users of a broker and their rights: looked at and set, never created; passwords are never asked for."""

from typing import Any

from delayctl.topology.access import quoted
from delayctl.topology.errors import NotPermitted, Refused
from delayctl.topology.management import Management
from delayctl.topology.pattern import MAX_PATTERN_BYTES
from delayctl.topology.permissions import Rights

_ADMINISTRATOR = "run it as a user with the tag administrator, or hand the lines of 'delayctl permissions' to one"
_SHORTER = "hold the user to some queues: or exchanges: in the file, split the file by prefix, or give it a wider pattern by hand"


def read_tags(management: Management) -> dict[str, tuple[str, ...]]:
    """Every user of the broker's own with its tags."""
    return {user["name"]: _tags(user["tags"]) for user in _as_administrator(management, "users?columns=name,tags")}


def read_permissions(management: Management) -> list[dict[str, Any]]:
    """What users may do in the virtual host: user, configure, write, read."""
    found: list[dict[str, Any]] = _as_administrator(management, f"vhosts/{management.vhost}/permissions")
    return found


def read_topic_permissions(management: Management) -> list[dict[str, Any]]:
    """Which keys users may use at topic exchanges of the virtual host: user, exchange, write, read."""
    found: list[dict[str, Any]] = _as_administrator(management, f"vhosts/{management.vhost}/topic-permissions")
    return found


def read_names(management: Management) -> frozenset[str]:
    """The names of all exchanges and queues in the virtual host."""
    listed = (management.get(f"{kind}/{management.vhost}?columns=name") for kind in ("exchanges", "queues"))
    return frozenset(item["name"] for items in listed for item in items if item["name"])


def set_rights(management: Management, user: str, rights: Rights) -> None:
    """Give a user these rights in the virtual host, in place of those that it has there."""
    body = {"configure": rights.configure, "write": rights.write, "read": rights.read}
    try:
        management.send("PUT", f"permissions/{management.vhost}/{quoted(user)}", body)
    except Refused as error:
        if "invalid_regexp" not in error.what:
            raise
        longest = max(len(pattern.encode()) for pattern in body.values())
        what = f"the broker refuses the pattern of {longest:,} bytes for user '{user}'"
        raise Refused(
            f"{what}: RabbitMQ 4.3 takes {MAX_PATTERN_BYTES:,} at most", code=error.code, fix=_SHORTER
        ) from error
    except NotPermitted as error:
        raise NotPermitted(error.what, fix=_ADMINISTRATOR) from error


def _as_administrator(management: Management, path: str) -> Any:
    try:
        return management.get(path)
    except NotPermitted as error:
        raise NotPermitted(error.what, fix=_ADMINISTRATOR) from error


def _tags(tags: str | list[str]) -> tuple[str, ...]:
    """Tags as a tuple; old brokers write them as one text."""
    return tuple(tag for tag in tags.split(",") if tag) if isinstance(tags, str) else tuple(tags)
