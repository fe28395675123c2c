"""Contestants, each in a process of its own, so that its CPU and its memory are nobody else's."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

Go = Callable[[], object]
Way = Callable[[str, int], AbstractContextManager[Go]]  # URL and count; what it yields is what is measured.


@dataclass(frozen=True)
class Measured:
    """What one run took."""

    count: int
    seconds: float
    cpu_seconds: float
    mib_before: float
    mib_most: float

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.count / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU per message, in microseconds."""
        return self.cpu_seconds / self.count * 1e6


def run(module: str, name: str, url: str, count: int) -> Measured:
    """Run one contestant."""
    command = [sys.executable, "-m", module, name, str(count)]
    done = subprocess.run(command, input=url, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{module} {name}: {done.stderr[-2000:]}"
    measured = Measured(**json.loads(done.stdout.splitlines()[-1]))
    print(f"bench: {name} {count:,}: {measured.rate:,.0f}/s, {measured.cpu_us:.1f} µs", file=sys.stderr, flush=True)
    return measured


def child(ways: Mapping[str, Way], memory: Callable[[], float] | None = None) -> None:
    """The process of a contestant: the URL comes on stdin, since everybody can read a command line.

    `memory` tells the most that was used so far, in MiB, where that is not what this process used.
    """
    memory = memory or mib_of
    name, count, url = sys.argv[1], int(sys.argv[2]), sys.stdin.read().strip()
    with ways[name](url, count) as go:
        before, cpu, started = memory(), time.process_time(), time.perf_counter()
        go()
        seconds, cpu_seconds, most = time.perf_counter() - started, time.process_time() - cpu, memory()
    print(json.dumps(asdict(Measured(count, seconds, cpu_seconds, before, most))))


def mib_of(process: str = "self") -> float:
    """The most memory that a process has had so far; getrusage would count that of the parent before it."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def middle(values: Sequence[float]) -> float:
    """The median."""
    return float(median(values))
