"""What a message remembers of its deaths: the header x-death, and the rule that breaks circles."""

from typing import Literal

Reason = Literal["expired", "maxlen", "rejected", "delivery_limit"]
Keys = str | tuple[str, ...]  # One routing key, or several.
# Plain tuples, since a million of them are made: queue, reason, exchange, keys, time, expiration, how many.
Death = tuple[str, str, str, Keys, int, str | None, int]
Deaths = tuple[Death, ...]  # One for each queue and reason, in the order of x-death.
Ends = tuple[Death, str]  # The first death, and the exchange of the last one.


def died(deaths: Deaths, ends: Ends | None, death: Death, *, is_new_style: bool) -> tuple[Deaths, Ends]:
    """What is known after one more death: the latest stands in front, one of the same kind is counted up.

    Brokers before 4.0 turn the rest of the list around with every death.
    """
    known = next((other for other in deaths if other[:2] == death[:2]), None)
    rest = tuple(other for other in deaths if other[:2] != death[:2])
    # All that is told of it but the count stays what it was at the first such death.
    latest = death if known is None else (*known[:6], known[6] + 1)
    first = ends[0] if ends is not None else deaths[0]
    return (latest, *(rest if is_new_style else rest[::-1])), (first, death[2])


def is_circle(deaths: Deaths, queue: str) -> bool:
    """Say whether a message died in this queue before, and since then nowhere because a consumer rejected it.

    "Since then" is what stands before it in x-death. With the order of old brokers that is not the same, and a message that
    was rejected once may go round for ever.
    """
    for death in deaths:
        if death[1] == "rejected":
            return False
        if death[0] == queue:
            return True
    return False


def death_headers(deaths: Deaths, ends: Ends | None, *, is_new_style: bool) -> dict[str, object]:
    """The headers that tell of the deaths; new brokers tell of the last one too."""
    first, exchange = (deaths[0], deaths[0][2]) if ends is None else ends
    headers: dict[str, object] = {"x-death": [_table(death) for death in deaths]} | _place("first", first)
    last = (*deaths[0][:2], exchange, *deaths[0][3:])
    return headers | _place("last", last) if is_new_style else headers


def _place(which: str, death: Death) -> dict[str, object]:
    queue, reason, exchange, *_ = death
    return {
        f"x-{which}-death-queue": queue,
        f"x-{which}-death-reason": reason,
        f"x-{which}-death-exchange": exchange,
    }


def _table(death: Death) -> dict[str, object]:
    queue, reason, exchange, keys, time, expiration, count = death
    table: dict[str, object] = {
        "count": count,
        "reason": reason,
        "queue": queue,
        "time": time // 1000,
        "exchange": exchange,
        "routing-keys": [keys] if isinstance(keys, str) else list(keys),
    }
    return table if expiration is None else table | {"original-expiration": expiration}


def deaths_from_header(value: object) -> Deaths:
    """Read the x-death that a publisher sent along, as brokers before 4.0 do."""
    tables = value if isinstance(value, list | tuple) else ()
    return tuple(_from_table(table) for table in tables if isinstance(table, dict))


def _from_table(table: dict[str, object]) -> Death:
    count, keys = table.get("count"), table.get("routing-keys")
    expiration = table.get("original-expiration")
    return (
        str(table.get("queue", "")),
        str(table.get("reason", "")),
        str(table.get("exchange", "")),
        tuple(map(str, keys)) if isinstance(keys, list | tuple) else (),
        0,
        None if expiration is None else str(expiration),
        count if isinstance(count, int) else 1,
    )
