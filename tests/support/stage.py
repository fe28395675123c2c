"""A stage without a broker, for tests of the server in front of it: it says what it is told to say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delayctl.topology.errors import DelayctlError
from delayctl.topology.figures import Samples
from delayctl.topology.status import Status
from delayctl.web.stage import Chosen, Observation

STATUS = Status("/", "4.3.6", (), (), (), (), 0, False, ())


@dataclass
class ToldStage:
    """What the next look finds; `trouble` is raised instead."""

    state: dict[str, Any] = field(default_factory=lambda: {"title": "topology.yaml"})
    counts: dict[str, int | None] = field(default_factory=lambda: {"delay.1m.queue": 3})
    history: dict[str, Samples] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    trouble: Exception | None = None
    looks: int = 0
    asked: list[Any] = field(default_factory=list)
    is_closed: bool = False

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def observe(self) -> Observation:
        """The state of now."""
        self._check()
        return Observation(STATUS, dict(self.state), "<svg/>", tuple(self.counts), dict(self.counts), self.history)

    def count(self, queues: tuple[str, ...]) -> Mapping[str, int | None]:
        """The counts of now."""
        self._check()
        return {name: self.counts.get(name) for name in queues}

    def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True

    def parked(self, queue: str) -> dict[str, Any]:
        """The messages, and that somebody looked."""
        self._check()
        self.looks += 1
        return {"queue": queue, "messages": list(self.messages)}

    def redrive(self, chosen: Chosen) -> dict[str, Any]:
        """Remember what was to be moved."""
        self._check()
        self.asked.append(chosen)
        return {"moved": 1}

    def what_if(self, question: Mapping[str, str]) -> dict[str, Any]:
        """Say the question again."""
        if "rates" not in question:
            raise DelayctlError("nobody says how many come", fix="give a rate")
        return {"question": dict(question)}
