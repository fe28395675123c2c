"""Topologies on real brokers, as the doctor sees them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.wait import until
from tests.support.rabbit import Rabbit

# Figures are renewed every second here, by default every five, and what follows from them takes some renewals.
SOON = 90
FILE = """\
version: 1
delay: {levels: [1h]}
queues: {work.queue: {}}
routes:
  - {key: order.created, delay: 1h, to: work.queue}
"""


@dataclass(frozen=True)
class Answer:
    """What the doctor said."""

    code: int
    said: dict[str, Any]

    def of(self, code: str) -> list[dict[str, Any]]:
        """The findings with this code."""
        return [finding for finding in self.said["findings"] if finding["code"] == code]

    @property
    def codes(self) -> set[str]:
        """All that was found to be wrong, besides what is only told, and figures that are late (H106)."""
        return {finding["code"] for finding in self.said["findings"] if finding["severity"] != "info"} - {"H106"}


@dataclass(frozen=True)
class Patient:
    """A topology on a broker, examined again and again."""

    rabbit: Rabbit
    file: str | None

    def examined(self, *options: str) -> Answer:
        """The answer as programs read it."""
        named = (self.file,) if self.file else ()
        ran = self.rabbit.delayctl("doctor", *named, "--output", "json", *options)
        assert ran.out, ran.err
        return Answer(ran.code, json.loads(ran.out))

    def until(self, condition: Callable[[Answer], object], what: str, *options: str) -> Answer:
        """Examine until the answer is as expected."""

        def found() -> Answer | None:
            answer = self.examined(*options)
            return answer if condition(answer) else None

        answer = until(found, SOON, what=what, every=0.5)
        assert answer is not None
        return answer

    def until_found(self, *codes: str) -> Answer:
        """Examine until all of these were found."""
        return self.until(lambda answer: answer.codes >= {*codes}, f"findings {', '.join(codes)}")
