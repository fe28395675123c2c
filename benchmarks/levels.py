"""The kinds of classic level that a release has."""

from delayctl.topology.version import parse_version

_ALWAYS_LAZY = (3, 12, 0)  # Classic queues keep what waits on disk since then, whatever they are told.


def kinds_of_level(version: str) -> tuple[bool, ...]:
    """Whether levels are lazy: what can be chosen on this release."""
    return (False, True) if (parse_version(version) or _ALWAYS_LAZY) < _ALWAYS_LAZY else (False,)
