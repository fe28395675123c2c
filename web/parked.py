"""Pages through what is parked in a queue: messages are looked at once, and shown for as long as somebody reads."""

import threading
from collections.abc import Mapping
from typing import Any

from delayctl.topology.errors import DelayctlError
from delayctl.web.stage import Json, Stage

PAGE = 100


class Parked:
    """What was seen in each parking queue, until it is looked into again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seen: dict[str, Json] = {}
        self._lock = threading.Lock()  # Two at once would take the messages from each other.

    def forget(self, queue: str) -> None:
        """Something was changed there."""
        self._seen.pop(queue, None)

    def page(self, asked: Mapping[str, Any]) -> Json:
        """Some of the messages that contain a text, and how many there are of each kind."""
        queue, offset, text = asked.get("queue"), asked.get("offset", 0), asked.get("text", "")
        if not isinstance(queue, str) or not isinstance(offset, int) or not isinstance(text, str) or offset < 0:
            raise DelayctlError("no queue is named", fix='send {"queue": "orders.dlq", "offset": 0, "text": ""}')
        with self._lock:
            if asked.get("fresh") or queue not in self._seen:
                self._seen[queue] = self._stage.parked(queue)
            seen = self._seen[queue]
        found = [message for message in seen["messages"] if _has(message, text.casefold())]
        return {**seen, "messages": found[offset : offset + PAGE], "found": len(found), "offset": offset, "page": PAGE}


def _has(message: Json, text: str) -> bool:
    return not text or any(text in value.casefold() for value in message.values() if isinstance(value, str))
