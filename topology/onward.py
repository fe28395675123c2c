"""Names that lead to others: which of them come before which, and from where a name is reached. Pure, of plain names."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import count

Onward = Iterable[tuple[str, str]]  # From one name to the next.


def ends_first(onward: Onward) -> dict[str, int]:
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


def leading_to(ends: Iterable[str], onward: Onward) -> frozenset[str]:
    """These names, and all that lead to one of them, be it by others."""
    before = defaultdict[str, list[str]](list)
    for source, destination in onward:
        before[destination].append(source)
    reached, ahead = set[str](), list(ends)
    while ahead:
        here = ahead.pop()
        if here not in reached:
            reached.add(here)
            ahead += before.get(here, ())
    return frozenset(reached)
