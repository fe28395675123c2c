"""Looks at a topology again and again; a file that was changed meanwhile is read again."""

import os
import time
from typing import Any

from delayctl.cli.host import host_for
from delayctl.cli.options import connection_from, spec_from
from delayctl.cli.status import gather
from delayctl.cli.verify import patience_of, prove_all
from delayctl.cli.verify_views import Report
from delayctl.cli.watch_scene import Sight, sight_of
from delayctl.consumers.canaries import Progress
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError, InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.spec import Spec
from delayctl.topology.verify_plan import Effort

_MAX_LATENESS = Duration(1_000)
_CANARIES = 2

Stamp = tuple[tuple[int, int] | None, ...]


class Looker:
    """A file and the broker that it is about. Options are those of a command, and are taken out of `options`."""

    def __init__(self, topology: str, options: dict[str, Any]) -> None:
        self._topology = topology
        self._template = {name: options.pop(name) for name in ("values_files", "assignments")}
        self._connection = connection_from(options)
        self._stamp, self._unread = self._stamp_now(), ""
        self._use(self._read())

    def look(self) -> Sight:
        """One look at the broker, or the reason why there is none as DelayctlError."""
        self._read_again()
        parks = tuple(retry.park for retry in self._spec.retries)
        facts = gather(self._host, self._desired, parks)
        return sight_of(facts, source=self._topology, now_ms=now_ms(), unread=self._unread)

    def verify(self, up_to: Duration, show: Progress) -> Report:
        """Send canaries, as `delayctl verify` does; none is hastened, which would look like messages that left early."""
        effort = Effort(_CANARIES, up_to, _MAX_LATENESS, patience_of(self._host, _MAX_LATENESS), hasten=False)
        return prove_all(self._host, self._spec, effort, file=self._topology, show=show)

    def _read(self) -> Spec:
        return spec_from(self._topology, dict(self._template))

    def _use(self, spec: Spec) -> None:
        self._spec, self._desired = spec, expand(spec)
        self._host = host_for(self._connection, self._connection.vhost_for(spec))

    def _read_again(self) -> None:
        """A file that can't be used leaves things as they were: it may be half written."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._use(self._read())
        except InvalidTopology as error:
            self._unread = error.problems[0].message
        except DelayctlError as error:
            self._unread = error.what
        else:
            self._unread = ""

    def _stamp_now(self) -> Stamp:
        return tuple(map(_stamp_of, (self._topology, *self._template["values_files"])))


def _stamp_of(file: str) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def now_ms() -> int:
    """The time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
