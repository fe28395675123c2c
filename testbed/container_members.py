"""The cluster of compose/cluster.yaml, whose containers can be killed and started again with their data."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from testbed.broker import RunningBroker
from testbed.compose import composed
from testbed.engine import engine
from testbed.image import any_image
from testbed.members import Cluster
from testbed.probe import answers
from testbed.wait import until

READY_WITHIN = 120.0
GONE_WITHIN = 30.0
SERVICE = "com.docker.compose.service"


class ContainerMember:
    """A container of RabbitMQ, alone or of a cluster; killed and started again, it keeps its volume."""

    def __init__(self, container: Any, broker: RunningBroker, *, host: str) -> None:
        self.name = f"rabbit@{host}"
        self.broker = broker
        self._container = container

    def kill(self) -> None:
        """Kill -9 of everything in it."""
        self._container.kill(signal="SIGKILL")
        until(lambda: self._container.wait(timeout=1), GONE_WITHIN, what=f"the end of {self.name}")

    def start(self) -> None:
        """Start it again with its data; returns when it answers."""
        self._container.start()
        url, management_url = self.broker.url, self.broker.management_url
        until(lambda: answers(self.broker.how, url=url, management_url=management_url), READY_WITHIN, what=self.name)

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run the tool in the container, as the user that owns the cookie."""
        code, output = self._container.exec_run(["rabbitmqctl", *arguments], user="rabbitmq")
        text = str(output.decode(errors="replace"))
        assert code == 0, text
        return text


@contextmanager
def container_cluster() -> Iterator[Cluster]:
    """Bring the three containers up, wait until they are one cluster, and take them down when the block ends."""
    with engine() as found, found.client() as client:
        image = any_image(client, found)
        with composed("cluster.yaml", engine=found, image=image) as project:
            containers = [client.containers.get(each) for each in project.containers()]
            by_host = sorted((str(each.labels[SERVICE]), each) for each in containers)
            made = zip(by_host, project.brokers, strict=True)
            cluster = Cluster(tuple(ContainerMember(each, broker, host=host) for (host, each), broker in made))
            cluster.await_whole()
            yield cluster
