"""Where a message may go on from an exchange, as far as a file and the message's key tell, until it waits."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import count

from delayctl.topology.key_index import common_key, is_pattern
from delayctl.topology.model import Binding, Topology

_LOOK_AT_KEYS = ("direct", "topic")
_End = tuple[str | None, str]  # The key that it takes to come there, if any, and the name.


class Onward:
    """The ways of a topology. Those out of its exit are left out: what goes there has waited."""

    def __init__(self, topology: Topology) -> None:
        types: dict[str, str | None] = {each.name: each.type for each in topology.existing if each.kind == "exchange"}
        self._types = types | {exchange.name: exchange.type for exchange in topology.exchanges}
        self._ends: dict[str, list[_End]] = defaultdict(list)
        self._open: dict[str, list[_End]] = defaultdict(list)  # Of these the ones that take more than one key,
        self._exact: dict[_End, list[str]] = defaultdict(list)  # and the others by key and source.
        for binding in topology.bindings:
            if binding.source != topology.exit:
                self._add(binding.source, self._key_of(binding), binding.destination)
        for exchange in topology.exchanges:
            if exchange.alternate is not None and exchange.name != topology.exit:
                self._add(exchange.name, None, exchange.alternate)

    def leads_to(self, way: Binding, ends: Set[str]) -> bool:
        """Say whether what goes this way may come to one of these names."""
        pairs = self._pairs(way.destination, self._key_of(way), but=ends)
        return way.destination in ends or any(name in ends for _, name in pairs)

    def distance(self, way: Binding) -> int:
        """A number that is larger for a way than for all those that its messages take from its destination on; 0 in a circle."""
        pairs = self._pairs(way.destination, self._key_of(way), but=frozenset())
        return ends_first([(way.source, way.destination), *pairs]).get(way.source, 0)

    def _add(self, source: str, key: str | None, destination: str) -> None:
        self._ends[source].append((key, destination))
        if key is None or is_pattern(key):
            self._open[source].append((key, destination))
        else:
            self._exact[key, source].append(destination)

    def _key_of(self, binding: Binding) -> str | None:
        """The key that a binding takes; None where its exchange looks at none."""
        kind = self._types.get(binding.source)
        return binding.key if kind in _LOOK_AT_KEYS or (kind is None and binding.key) else None

    def _pairs(self, begin: str, key: str | None, *, but: Set[str]) -> list[tuple[str, str]]:
        """Every step that a message with such a key may take from here on, not beyond the names in `but`."""
        pairs, seen, ahead = list[tuple[str, str]](), {begin}, [begin]
        while ahead:
            here = ahead.pop()
            for name in self._next(here, key) if here not in but else ():
                pairs.append((here, name))
                if name not in seen:
                    seen.add(name)
                    ahead.append(name)
        return pairs

    def _next(self, here: str, key: str | None) -> Iterator[str]:
        is_one = key is not None and not is_pattern(key)
        yield from self._exact.get((key, here), ()) if is_one else ()
        for taken, name in self._open.get(here, ()) if is_one else self._ends.get(here, ()):
            if key is None or taken is None or common_key(taken, key) is not None:
                yield name


def ends_first(onward: Iterable[tuple[str, str]]) -> dict[str, int]:
    """A number for each name, above those of all that it leads to; names that lead into a circle have none."""
    sorter = TopologicalSorter[str]()
    for source, destination in onward:
        sorter.add(source, destination)
    with suppress(CycleError):  # What is outside of the circle is given out all the same.
        sorter.prepare()
    numbers: dict[str, int] = {}
    for number in count():
        if not (ready := sorter.get_ready()):
            break
        numbers |= dict.fromkeys(ready, number)
        sorter.done(*ready)
    return numbers
