"""The command that shows how a message came to its end, ready to be run."""

import json
from collections.abc import Collection, Iterable

from delayctl.simulator.what_if_traffic import Stream
from delayctl.topology.journey import Fate, journey
from delayctl.topology.routing import Network
from delayctl.topology.wording import argument


def explaining(
    file: str, network: Network, streams: Iterable[Stream], parking: Collection[str], wanted: Collection[Fate]
) -> dict[Fate, str]:
    """For every wanted end that messages come to, how to ask for the way of the first that does."""
    found: dict[Fate, str] = {}
    for stream in streams:
        if found.keys() >= set(wanted):
            break
        for end in journey(network, stream.exchange, stream.message, parking=parking).ends:
            found.setdefault(end.fate, _command(file, stream))
    return found


def _command(file: str, stream: Stream) -> str:
    words = ["delayctl", "explain", file, "--exchange", stream.exchange, "--key", stream.message.key]
    for name, value in stream.message.headers.items():
        words += ["--header", f"{name}={json.dumps(value, default=str)}"]
    return " ".join(map(argument, words))
