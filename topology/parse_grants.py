"""The `permissions` section: which user has which role."""

from collections.abc import Collection

from delayctl.topology.names import ANY
from delayctl.topology.parse_routes import Scope
from delayctl.topology.reader import Entry, Reader, listed
from delayctl.topology.source import ListNode, MapNode, Node
from delayctl.topology.spec import ROLES, GrantSpec, Role
from delayctl.topology.wording import did_you_mean, quoted

GRANT_KEYS = ("role", "queues", "exchanges")
_HELD_TO: tuple[tuple[str, Role], ...] = (("queues", "consumer"), ("exchanges", "publisher"))


def read_grants(reader: Reader, node: Node | None, scope: Scope) -> tuple[GrantSpec, ...]:
    """Read all users; their names are as the broker knows them."""
    entries = reader.entries(node, "permissions") if node else ()
    return tuple(grant for entry in entries if (grant := _read_grant(reader, entry, scope)))


def _read_grant(reader: Reader, entry: Entry, scope: Scope) -> GrantSpec | None:
    user, key, node = entry
    what = f"permissions of {quoted(user)}"
    is_named = reader.check_name(key, "user", user, may_be_predefined=True)
    fields = reader.fields(node, what, GRANT_KEYS) if isinstance(node, MapNode) else {"role": node}
    if "role" not in fields:
        reader.problem(key, f"{what} have no 'role'", fix=f"add role: {', '.join(ROLES[:-1])} or {ROLES[-1]}")
    role = reader.choice(fields["role"], f"role of {quoted(user)}", ROLES) if "role" in fields else None
    only: list[str] = []
    for field, fitting in _HELD_TO:
        if field in fields and role not in (fitting, None):
            fix = f"remove {field}, or write role: {fitting}"
            reader.problem(fields[field], f"{what}: '{field}' goes with the role {fitting}, not {role}", fix=fix)
        elif field in fields:
            only += _read_names(reader, fields[field], f"{field} of {quoted(user)}", _known(field, scope))
    return GrantSpec(user, role, tuple(only), reader.line_of(key)) if is_named and role else None


def _known(field: str, scope: Scope) -> set[str]:
    """What the file declares or uses: its own objects, and those of delayctl that people use as well."""
    names, ladder = scope.names, scope.levels.ladder
    has_delays = ladder is not None or any(scope.levels)
    if field == "queues":
        return {*scope.objects.queues, *([names.unrouted_queue()] if has_delays else [])}
    own = [names.exit(), *(names.entrance(level.name) for level in scope.levels)] if has_delays else []
    own += [names.entrance(ANY)] if ladder else []
    return {*scope.objects.exchanges, *own}


def _read_names(reader: Reader, node: Node, what: str, known: Collection[str]) -> list[str]:
    items = node.items if isinstance(node, ListNode) else [node]
    if not items:
        reader.problem(node, f"{what} is an empty list", fix="name at least one, or leave it out to mean all")
    names = (name for item in items if (name := _read_name(reader, item, what, known)))
    return list(dict.fromkeys(names))


def _read_name(reader: Reader, node: Node, what: str, known: Collection[str]) -> str | None:
    name = reader.text(node, what)
    if name is not None and name not in known:
        message = f"{what}: the file has no {quoted(name)}{did_you_mean(name, known)}"
        reader.problem(node, message, fix=f"name what the file declares or uses: {listed(sorted(known))}")
    return name
