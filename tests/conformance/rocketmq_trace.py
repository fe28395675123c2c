"""What was seen of a scenario, on a real RocketMQ or on the simulated one; as JSON it is kept beside the tests."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TRACES = Path(__file__).parent / "traces"
# What clients and brokers note for themselves, and the id, which is kept in a field of its own.
NOT_KEPT = {"CLUSTER", "CONSUME_START_TIME", "MAX_OFFSET", "MIN_OFFSET", "MSG_REGION", "TRACE_ON", "UNIQ_KEY"}
ORIGIN = "ORIGIN_MESSAGE_ID"
OWN_ID = "the id it was sent with"


@dataclass(frozen=True)
class Sent:
    """A message that was sent: when the broker stored it, or what the sender was told instead."""

    body: str
    time: int
    error: str | None = None


@dataclass(frozen=True)
class Stored:
    """A message as it lies in a topic. `sent_as` is the body of the message that was sent with the same id."""

    topic: str
    queue: int
    time: int
    body: str
    sent_as: str
    reconsume_times: int
    properties: Mapping[str, str]


@dataclass(frozen=True)
class Seen:
    """A message as a listener saw it; `call` counts the calls of a group, `pulled_from` is where it was stored."""

    group: str
    call: int
    time: int
    pulled_from: str
    message: Stored


@dataclass(frozen=True)
class BrokerChange:
    """The broker was killed, or is stopping, stopped, starting or started; with the offsets on disk, by level."""

    time: int
    what: str
    offsets: Mapping[str, int]


@dataclass(frozen=True)
class Trace:
    """Times are milliseconds since the scenario began, or since its broker did where it had one for itself."""

    scenario: str
    version: str
    began: int  # Milliseconds since 1970: timer messages are cut to seconds of the clock on the wall.
    sent: tuple[Sent, ...]
    seen: tuple[Seen, ...]
    stored: tuple[Stored, ...]
    broker: tuple[BrokerChange, ...]

    def in_topic(self, topic: str) -> list[Stored]:
        """What lies in a topic, in the order of its queues."""
        return [message for message in self.stored if message.topic == topic]


def kept(properties: Mapping[str, str], origins: Mapping[str, str]) -> dict[str, str]:
    """The properties that do not differ between two runs; an origin becomes the topic in which that copy lies, or OWN_ID."""
    found = {name: value for name, value in properties.items() if name not in NOT_KEPT}
    if ORIGIN in found:
        found[ORIGIN] = origins[found[ORIGIN]]
    return dict(sorted(found.items()))


def save(version: str, traces: Iterable[Trace], folder: Path = TRACES) -> None:
    """Write the traces of a version into one file."""
    folder.mkdir(parents=True, exist_ok=True)
    scenarios = ",\n".join(json.dumps(asdict(trace)) for trace in traces)
    _file(version, folder).write_text(f"[\n{scenarios}\n]\n", encoding="utf-8")


def load(version: str, folder: Path = TRACES) -> dict[str, Trace]:
    """Read the traces of a version, by scenario."""
    return {found["scenario"]: _trace(found) for found in json.loads(_file(version, folder).read_text("utf-8"))}


def versions(folder: Path = TRACES) -> list[str]:
    """The versions of RocketMQ that there are traces of."""
    return sorted(file.stem.removeprefix("rocketmq-") for file in folder.glob("rocketmq-*.json"))


def _file(version: str, folder: Path) -> Path:
    return folder / f"rocketmq-{version}.json"


def _trace(found: dict[str, Any]) -> Trace:
    return Trace(
        scenario=str(found["scenario"]),
        version=str(found["version"]),
        began=int(found["began"]),
        sent=tuple(Sent(**each) for each in found["sent"]),
        seen=tuple(Seen(**{**each, "message": Stored(**each["message"])}) for each in found["seen"]),
        stored=tuple(Stored(**each) for each in found["stored"]),
        broker=tuple(BrokerChange(**each) for each in found["broker"]),
    )
