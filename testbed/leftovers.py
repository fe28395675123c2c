"""What a killed run left on somebody's Docker engine: marked when it is made, removed by the next run."""

import os
import socket

import docker  # type: ignore[import-untyped]

OWNER = "delayctl.testbed.owner"


def labels() -> dict[str, str]:
    """Return the mark of this process: an engine may serve several machines, so the host's name is part of it."""
    return {OWNER: f"{socket.gethostname()}:{os.getpid()}"}


def sweep(client: docker.DockerClient) -> None:
    """Remove containers and networks of ours whose process on this machine is gone."""
    ours = {"label": OWNER}
    for container in client.containers.list(all=True, filters=ours):
        if is_abandoned(container.labels[OWNER]):
            container.remove(force=True, v=True)
    for network in client.networks.list(filters=ours):
        if is_abandoned(network.attrs["Labels"][OWNER]):
            network.remove()


def is_abandoned(owner: str) -> bool:
    """Tell whether the process of this mark ran on this machine and runs no more."""
    host, _, pid = owner.rpartition(":")
    return host == socket.gethostname() and not os.path.exists(f"/proc/{pid}")
