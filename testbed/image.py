"""The image of RabbitMQ 4.3: the official one where it can be had, else one made here from Debian's packages."""

import queue
import threading
from collections.abc import Mapping
from typing import Any

import docker  # type: ignore[import-untyped]
import requests

from testbed.broker import BrokerUnavailable
from testbed.cache import locked, say
from testbed.engine import Engine
from testbed.rootfs import CHANGES, SERIES, recipe, rootfs, rootfs_path

OFFICIAL = f"rabbitmq:{SERIES}-management"
BUILT_REPOSITORY, BUILT_TAG = "delayctl/rabbitmq", f"{SERIES}-debian"
BUILT = f"{BUILT_REPOSITORY}:{BUILT_TAG}"
RECIPE_LABEL = "delayctl.recipe"
# An engine that reaches the registry says something well within this; one behind a closed network never does.
SILENCE = 8.0


def ready_image(client: docker.DockerClient, _engine: Engine) -> str:
    """Return the image that is there or can be pulled, or raise; nothing is built."""
    found = _present(client)
    if found:
        return found
    reason = pull(client, OFFICIAL)
    if reason:
        raise BrokerUnavailable(f"container: {OFFICIAL} is not there and cannot be pulled: {reason}")
    return OFFICIAL


def any_image(client: docker.DockerClient, engine: Engine) -> str:
    """Return the image that is there, can be pulled, or else is built from Debian's packages."""
    found = _present(client)
    if found:
        return found
    # A private engine forgets what it pulled, while what was built is kept in the cache.
    if not engine.is_private and not rootfs_path().exists():
        reason = pull(client, OFFICIAL)
        if reason is None:
            return OFFICIAL
        say(f"{OFFICIAL} cannot be pulled ({reason}): building {BUILT} from Debian's packages")
    return build(client)


def build(client: docker.DockerClient) -> str:
    """Import the Debian-made image into the engine and return its name."""
    archive = rootfs()
    with locked("image-import"):
        if not _is_built(client):
            say(f"importing {BUILT}")
            changes = [*CHANGES, f"LABEL {RECIPE_LABEL}={recipe()}"]
            client.api.import_image(str(archive), repository=BUILT_REPOSITORY, tag=BUILT_TAG, changes=changes)
    return BUILT


def pull(client: docker.DockerClient, image: str) -> str | None:
    """Pull an image; return None, or the reason why it can't be had, at the latest after `SILENCE` seconds of it."""
    lines: queue.Queue[Mapping[str, Any]] = queue.Queue()
    # A daemon thread: the client has no time-out for pulls, and a silent registry must not hold the program's end.
    threading.Thread(target=_pull, args=(client, image, lines), daemon=True).start()
    say(f"pulling {image}")
    while True:
        try:
            line = lines.get(timeout=SILENCE)
        except queue.Empty:
            return f"the registry did not answer within {SILENCE:g} s"
        if "error" in line:
            return str(line["error"]).strip()
        if "done" in line:
            return None


def _pull(client: docker.DockerClient, image: str, lines: "queue.Queue[Mapping[str, Any]]") -> None:
    repository, _, tag = image.rpartition(":")
    try:
        for line in client.api.pull(repository, tag=tag, stream=True, decode=True):
            lines.put(line)
        lines.put({"done": True})
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        lines.put({"error": getattr(error, "explanation", None) or error})


def _present(client: docker.DockerClient) -> str | None:
    if _labels(client, OFFICIAL) is not None:
        return OFFICIAL
    return BUILT if _is_built(client) else None


def _is_built(client: docker.DockerClient) -> bool:
    labels = _labels(client, BUILT)
    return labels is not None and labels.get(RECIPE_LABEL) == recipe()


def _labels(client: docker.DockerClient, image: str) -> dict[str, str] | None:
    try:
        return dict(client.images.get(image).labels)
    except docker.errors.ImageNotFound:
        return None
