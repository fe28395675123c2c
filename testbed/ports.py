"""Free ports on the loopback address."""

import os
import random
import socket

LOOPBACK = "127.0.0.1"
# Below the kernel's range for outgoing connections, so that none of those takes a port between the look and the use.
CANDIDATES = range(20_000, 32_000)
SHARES = 12


def free_ports(count: int) -> tuple[int, ...]:
    """Pick `count` different ports that nothing listens on at 127.0.0.1."""
    picked: list[int] = []
    candidates = share(os.environ.get("PYTEST_XDIST_WORKER", ""))
    for port in random.sample(candidates, len(candidates)):
        if len(picked) == count:
            break
        if is_free(port):
            picked.append(port)
    if len(picked) < count:
        raise OSError(f"only {len(picked)} of {count} ports are free between {candidates.start} and {candidates.stop}")
    return tuple(picked)


def share(worker: str) -> range:
    """Return the ports for one process of a split test run: two that look at once must not find the same one."""
    if not worker:
        return CANDIDATES
    size = len(CANDIDATES) // SHARES
    start = CANDIDATES.start + int(worker.removeprefix("gw")) % SHARES * size
    return range(start, start + size)


def is_free(port: int) -> bool:
    """Tell whether a listener could be opened on this port of 127.0.0.1."""
    with socket.socket() as probe:
        # As Erlang and Docker do: without it a port in TIME_WAIT looks taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
