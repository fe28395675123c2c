"""A virtual host of its own for a measurement."""

import json
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3
from delayctl.topology.access import Access
from delayctl.topology.execute import Done, execute
from delayctl.topology.expand import expand
from delayctl.topology.management import Management
from delayctl.topology.model import Topology
from delayctl.topology.parse import read_spec
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import make_plan

_POOL = urllib3.PoolManager(timeout=600, retries=False)


class Vhost:
    """A virtual host that is empty at first and gone at the end."""

    def __init__(self, access: Access, name: str) -> None:
        self.access, self.name = access.at(name), name
        credentials = access.management_credentials
        login = urllib3.make_headers(basic_auth=f"{credentials.username}:{credentials.password}")
        self._headers = {**login, "content-type": "application/json"}
        assert urlsplit(access.management_url).scheme == "http"

    def __enter__(self) -> "Vhost":
        self._call("DELETE", f"vhosts/{self.name}")
        self._call("PUT", f"vhosts/{self.name}")
        return self

    def __exit__(self, *_: object) -> None:
        self._call("DELETE", f"vhosts/{self.name}")
        self._call("DELETE", f"global-parameters/delayctl%3A{self.name}%3A")

    @property
    def url(self) -> str:
        """The AMQP URL."""
        user = self.access.credentials
        place = self.access.address.partition("://")[2]
        return f"amqp://{quote(user.username)}:{quote(user.password)}@{place}/{self.name}"

    def purge(self, queue: str) -> None:
        """Empty a queue."""
        self._call("DELETE", f"queues/{self.name}/{quote(queue, safe='')}/contents")

    def read(self) -> Any:
        """Read and decode the definitions over a connection of its own, as a command would: the yardstick of plan."""
        with urllib3.PoolManager(timeout=60, retries=False) as pool:
            url = f"{self.access.management_url}/api/definitions/{self.name}"
            return json.loads(pool.request("GET", url, headers=self._headers).data)

    def import_definitions(self, definitions: Any) -> None:
        """The yardstick of apply."""
        self._call("POST", f"definitions/{self.name}", json.dumps(definitions).encode())

    def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        response = _POOL.request(method, f"{self.access.management_url}/api/{path}", headers=self._headers, body=body)
        assert response.status < 300 or response.status == 404, (method, path, response.status, response.data)
        return response.data


def understand(text: str) -> Topology:
    """From the file's text to the desired topology."""
    return expand(read_spec(text, {}, file="bench"))


def apply_text(vhost: Vhost, text: str) -> None:
    """What the command does: understand the file, read, compare, carry out."""
    management = Management(vhost.access, vhost.name)
    with RabbitBroker(vhost.access, management) as broker:
        plan, _ = make_plan(understand(text), management, broker, vhost=vhost.name)
        outcomes = list(execute(plan, broker))
    assert all(isinstance(outcome, Done) for outcome in outcomes), [o for o in outcomes if not isinstance(o, Done)][:3]
