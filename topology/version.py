"""Releases of RabbitMQ, and what they are able to do."""

import re

Version = tuple[int, int, int]
# 4.3.0 has it too, but takes none of it from policies, and its quorum queues may not outlive an unclean shutdown.
DELAYED_RETRY_SINCE: Version = (4, 3, 1)
# The first release that was seen to do so; 3.10 puts them behind the others, or mixes them up.
PLACES_KEPT_SINCE: Version = (4, 3, 0)
# Classic queues of later releases keep what waits on disk whether they are told to or not.
ON_DISK_SINCE: Version = (3, 12, 0)

# Quorum queues of earlier releases give up what comes back too often only where they are told to.
DELIVERY_LIMIT_SINCE: Version = (4, 0, 0)


def parse_version(text: str) -> Version | None:
    """Read a version such as 3.10.8 or 4.3.6-beta.1; None where it is none."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def version_text(version: Version) -> str:
    """A version as people write it."""
    return ".".join(map(str, version))


def has_delayed_retry(text: str) -> bool:
    """Say whether quorum queues of this release make messages wait before a retry; one that can't be read does not."""
    version = parse_version(text)
    return version is not None and version >= DELAYED_RETRY_SINCE


def keeps_places(text: str) -> bool:
    """Say whether quorum queues of this release put messages that are given back where they were."""
    version = parse_version(text)
    return version is not None and version >= PLACES_KEPT_SINCE


def has_default_delivery_limit(text: str) -> bool:
    """Say whether quorum queues of this release give up what comes back too often untold; one that can't be read may."""
    version = parse_version(text)
    return version is None or version >= DELIVERY_LIMIT_SINCE
