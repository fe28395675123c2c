"""The management API: the one module that speaks HTTP."""

import base64
import json
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import RemoteDisconnected
from typing import Any

import urllib3
from delayctl.topology.access import Access, quoted
from delayctl.topology.arguments import queue_arguments
from delayctl.topology.errors import (
    AuthenticationFailed,
    BrokerError,
    ManagementUnavailable,
    NotPermitted,
    RecordUnreadable,
    Refused,
    VhostMissing,
)
from delayctl.topology.limits import queue_limit
from delayctl.topology.live import Backlog, Live, binding_from_api, live_from_definitions
from delayctl.topology.model import Binding, Policy, Queue, thaw
from delayctl.topology.names import Names
from delayctl.topology.record import Record, from_json, to_json
from delayctl.topology.wording import command
from urllib3.exceptions import (
    HTTPError,
    MaxRetryError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    SSLError,
    TimeoutError,
)

_COLUMNS = "columns=name,durable,auto_delete,internal,arguments,type,owner_pid_details"
_LISTED = ("bindings", "exchanges", "operator-policies", "policies", "queues")
_SWITCH_ON = "switch the API on (rabbitmq-plugins enable rabbitmq_management), or correct --management-url"
IF_IT_RUNS = "start the broker, or correct --url or DELAYCTL_URL; if it runs, "
_START = IF_IT_RUNS + _SWITCH_ON
_BEFORE_API = "correct --management-url: it names what stands before /api, such as http://localhost:15672"
_TAGS = "let an administrator add the tag policymaker (rabbitmqctl set_user_tags, with the tags the user has)"


class Management:
    """Reads and writes what AMQP can't, for one virtual host.

    `without` is the advice for those who can do without it; it is added to the fixes of what can't be reached. Long
    answers get a minute whatever the timeout is, but for those who are not patient.
    """

    def __init__(self, access: Access, vhost: str, *, without: str = "", is_patient: bool = True) -> None:
        self._without = without
        self._base = f"{access.management_url}/api"
        self._vhost = vhost
        self._user = access.management_credentials.username
        credentials = access.management_credentials
        login = base64.b64encode(f"{credentials.username}:{credentials.password}".encode()).decode()
        self._headers = {"authorization": f"Basic {login}", "content-type": "application/json"}
        longest_s = max(access.timeout_s, 60) if is_patient else access.timeout_s
        timeout = urllib3.Timeout(connect=access.timeout_s, read=longest_s)
        context = access.tls.context() if self._base.startswith("https") else None
        self._pool = urllib3.PoolManager(retries=False, timeout=timeout, maxsize=8, ssl_context=context)

    def read(self, prefix: str, exchanges: Collection[str] = ()) -> Live:
        """Read the virtual host and the record that belongs to the prefix.

        `exchanges` are looked for with care, and so are those of the record.
        """
        with ThreadPoolExecutor(1) as beside:
            reading = beside.submit(self._read_records, prefix)
            definitions = self._definitions()
        record, neighbours = reading.result()
        expected = {*exchanges, *(record.exchanges if record else ())}
        definitions["exchanges"] += self._internal_exchanges(definitions, expected)
        return live_from_definitions(definitions, record=record, neighbours=neighbours)

    def _definitions(self) -> Any:
        status, definitions = self._request("GET", f"definitions/{quoted(self._vhost)}")
        if status == 401 and "administrator" in str(definitions.get("reason")):
            # Definitions are for administrators only; the single lists are slower and open to all who manage.
            return self._lists()
        self._check(status, definitions)
        return definitions

    def _internal_exchanges(self, definitions: Any, expected: Collection[str]) -> list[Any]:
        """Exchanges that newer brokers leave out of the definitions because they are internal."""
        seen = {exchange["name"] for exchange in definitions["exchanges"]}
        missing = set(expected) - seen
        listed = self.get(f"exchanges/{quoted(self._vhost)}?{_COLUMNS}") if missing else []
        return [exchange for exchange in listed if exchange["name"] in missing]

    def _lists(self) -> dict[str, Any]:
        vhost = quoted(self._vhost)
        return {
            "rabbit_version": self.version(),
            "exchanges": [
                e for e in self.get(f"exchanges/{vhost}?{_COLUMNS}") if e["name"] and not e["name"].startswith("amq.")
            ],
            "queues": [q for q in self.get(f"queues/{vhost}?{_COLUMNS}") if not q.get("owner_pid_details")],
            "bindings": [b for b in self.get(f"bindings/{vhost}") if b["source"]],
            "policies": self.get(f"policies/{vhost}"),
            "parameters": [
                {"component": "operator_policy", "name": policy["name"], "value": policy}
                for policy in self.get(f"operator-policies/{vhost}")
            ],
        }

    def bindings_of(self, exchange: str) -> frozenset[Binding]:
        """Every binding of an exchange, also those to queues that the definitions leave out."""
        place = f"exchanges/{quoted(self._vhost)}/{quoted(exchange)}/bindings"
        return frozenset(
            binding_from_api(item) for end in ("source", "destination") for item in self.get(f"{place}/{end}")
        )

    def policy_of(self, exchange: str) -> str | None:
        """The policy that is in force at an exchange."""
        found = self.get(f"exchanges/{quoted(self._vhost)}/{quoted(exchange)}").get("policy")
        return str(found) if found else None

    def version(self) -> str:
        """The broker's version."""
        return str(self.get("overview")["rabbitmq_version"])

    def cluster_name(self) -> str:
        """What the broker calls itself, by whatever address it is reached."""
        return str(self.get("cluster-name")["name"])

    def heard_of(self, queue: str) -> tuple[int, int]:
        """All messages of a queue, and those of them that are not ready: held, waiting, or being dead-lettered.

        The figures may be some seconds old.
        """
        return _heard_of(self.get(f"queues/{quoted(self._vhost)}/{quoted(queue)}"))

    def backlog(self, queue: str) -> Backlog:
        """All messages of a queue and its consumers, as old as other figures."""
        found = self.get(f"queues/{quoted(self._vhost)}/{quoted(queue)}")
        return Backlog(_heard_of(found)[0], found.get("consumers") or 0)

    def has_queue(self, name: str) -> bool:
        """Say whether the broker behind the management API knows a queue."""
        status, answer = self._request("GET", f"queues/{quoted(self._vhost)}/{quoted(name)}")
        if status == 404:
            self._check_api()
            return False
        self._check(status, answer)
        return True

    def running_nodes(self) -> tuple[str, ...]:
        """The nodes that run; none where the user may not know."""
        try:
            return tuple(node["name"] for node in self.get("nodes?columns=name,running") if node["running"])
        except NotPermitted:
            return ()

    def exchange_types(self) -> frozenset[str]:
        """The types of exchanges that can be declared."""
        return frozenset(item["name"] for item in self.get("overview").get("exchange_types", ()))

    def put_queue(self, queue: Queue, node: str) -> None:
        """Declare a queue on a node."""
        body = {
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": queue_arguments(queue),
            "node": node,
        }
        self.send("PUT", f"queues/{quoted(self._vhost)}/{quoted(queue.name)}", body)

    def put_policy(self, policy: Policy) -> None:
        """Set a policy."""
        definition = {name: thaw(value) for name, value in policy.definition}
        body = {
            "pattern": policy.pattern,
            "apply-to": policy.apply_to,
            "priority": policy.priority,
            "definition": definition,
        }
        self.send("PUT", f"policies/{quoted(self._vhost)}/{quoted(policy.name)}", body)

    def delete_policy(self, name: str) -> None:
        """Remove a policy; one that is gone already is fine."""
        self.send("DELETE", f"policies/{quoted(self._vhost)}/{quoted(name)}", missing_is_fine=True)

    def read_record(self, prefix: str) -> Record | None:
        """The record of what was applied, or None where there is none."""
        name = Names(prefix).record(self._vhost)
        status, answer = self._request("GET", f"global-parameters/{quoted(name)}")
        if status == 404:
            return None
        if status in (401, 403) and "access object" in str(answer.get("reason")):
            raise NotPermitted(
                f"user '{self._user}' may not read what was applied before (global parameters)",
                fix=self._or_without(_TAGS),
            )
        self._check(status, answer)
        try:
            return from_json(answer["value"])
        except (KeyError, TypeError, ValueError) as error:
            raise RecordUnreadable(
                f"the record '{name}' on the broker can't be read ({type(error).__name__}: {error})",
                fix=f"use the delayctl version that wrote it, or remove it: {command('rabbitmqctl', 'clear_global_parameter', name)}",
            ) from error

    def _read_records(self, prefix: str) -> tuple[Record | None, dict[str, Record]]:
        """The record that belongs to the prefix, and those of other prefixes."""
        record, head = self.read_record(prefix), Names().record(self._vhost)
        names = [item["name"] for item in self.get("global-parameters?columns=name")]
        others = [name.removeprefix(head) for name in names if name.startswith(head)]
        found = {other: self.read_record(other) for other in others if other != prefix}
        return record, {other: record for other, record in found.items() if record is not None}

    def write_record(self, prefix: str, record: Record) -> None:
        """Remember what was applied; an empty record is removed."""
        name = Names(prefix).record(self._vhost)
        if len(record) or record.restore or record.replaced:
            self.send("PUT", f"global-parameters/{quoted(name)}", {"name": name, "value": to_json(record)})
        else:
            self.send("DELETE", f"global-parameters/{quoted(name)}", missing_is_fine=True)

    @property
    def vhost(self) -> str:
        """The virtual host, as a path spells it."""
        return quoted(self._vhost)

    def get(self, path: str) -> Any:
        """Read something below /api/, decoded."""
        status, answer = self._request("GET", path)
        # All that is in a virtual host can be listed, be it nothing: what is not found is the host itself.
        if status == 404 and path.partition("?")[0] in {f"{kind}/{self.vhost}" for kind in _LISTED}:
            self._check_api()
            raise self._no_vhost()
        self._check(status, answer)
        return answer

    def check_vhost(self) -> None:
        """Raise VhostMissing where there is no such virtual host."""
        self.get(f"exchanges/{self.vhost}?columns=name")

    def send(self, method: str, path: str, body: Any = None, *, missing_is_fine: bool = False) -> None:
        """Write or remove something below /api/."""
        status, answer = self._request(method, path, body)
        if not (status == 404 and missing_is_fine):
            self._check(status, answer)

    def _request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        try:
            response = self._send(method, path, content)
        except HTTPError as error:
            raise self._unavailable(error) from error
        if not response.data:
            return response.status, {}
        try:
            return response.status, json.loads(response.data)
        except ValueError as error:
            raise self._something_else() from error

    def _send(self, method: str, path: str, content: bytes | None) -> urllib3.BaseHTTPResponse:
        ask = partial(self._pool.request, method, f"{self._base}/{path}", headers=self._headers, body=content)
        try:
            return ask()
        except ProtocolError as error:
            if not isinstance(error.__cause__ or error.__context__, RemoteDisconnected):
                raise
            # A broker ends idle connections, this one in the very moment in which it was asked: it did not hear that.
            return ask()

    def _check(self, status: int, answer: Any) -> None:
        """Raise our error for an answer that is no success."""
        if status < 300:
            return
        if not isinstance(answer, dict) or "error" not in answer:
            raise self._something_else()
        if status == 404:
            self._check_api()
        reason = str(answer.get("reason", ""))
        if "vhost_not_found" in reason:
            raise self._no_vhost()
        raise self._refusal(status, reason)

    def _check_api(self) -> None:
        """Raise ManagementUnavailable where even that is not found which every management API has."""
        if self._request("GET", "overview")[0] == 404:
            raise self._something_else()

    def _no_vhost(self) -> VhostMissing:
        create = command("rabbitmqctl", "add_vhost", self._vhost)
        fix = f"create it ({create}), or name another with vhost: in the file or --vhost"
        return VhostMissing(f"there is no virtual host '{self._vhost}'", fix=fix)

    def _refusal(self, status: int, reason: str) -> BrokerError:
        if status == 401 and reason.lower() in ("login failed", "not_authorized", ""):
            return AuthenticationFailed(
                f"the management API at {self._base} refuses user '{self._user}' or the password",
                fix="check the user and password in --url, DELAYCTL_USERNAME/DELAYCTL_PASSWORD or --credentials-file",
            )
        if status in (401, 403) and reason == "Not management user":
            return ManagementUnavailable(
                f"user '{self._user}' may not use the management API", fix=self._or_without(_TAGS), is_off=True
            )
        if status in (401, 403) and "virtual host" in reason:
            what = f"user '{self._user}' has no access to virtual host '{self._vhost}'"
            grant = command(
                "rabbitmqctl", "set_permissions", "-p", self._vhost, self._user, "CONFIGURE", "WRITE", "READ"
            )
            return NotPermitted(what, fix=f"let an administrator grant it: {grant}")
        if status in (401, 403):
            return NotPermitted(f"user '{self._user}' is not permitted by the management API: {reason}", fix=_TAGS)
        if full := queue_limit(reason, self._vhost, status):
            return full
        return Refused(f"the management API answered {status}: {reason or 'no reason given'}", code=status)

    def _or_without(self, fix: str) -> str:
        return f"{fix}, {self._without}" if self._without else fix

    def _something_else(self) -> ManagementUnavailable:
        what = f"{self._base} answers, but not as RabbitMQ's management API does"
        return ManagementUnavailable(what, fix=self._or_without(_BEFORE_API))

    def _unavailable(self, error: HTTPError) -> ManagementUnavailable:
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        if "certificate required" in str(cause) or "CERTIFICATE_REQUIRED" in str(cause):
            what = f"{self._base} asks for a client certificate"
            return ManagementUnavailable(what, fix="name it with --cert-file and --key-file")
        if "WRONG_VERSION_NUMBER" in str(cause):
            what = f"{self._base} does not speak TLS"
            return ManagementUnavailable(
                what, fix=self._or_without("write http:// in --management-url, or name the port of its TLS (15671)")
            )
        if isinstance(cause, SSLError):
            return ManagementUnavailable(
                f"TLS with {self._base} fails: {cause}",
                fix="name the CA with --ca-file, and the client certificate with --cert-file if one is asked for",
            )
        if isinstance(cause, NameResolutionError):
            return ManagementUnavailable(
                f"the host name in {self._base} does not resolve",
                fix=self._or_without("correct --management-url, or --url where the name comes from there"),
                is_off=True,
            )
        if isinstance(cause, NewConnectionError):
            return ManagementUnavailable(
                f"no management API listens at {self._base}", fix=self._or_without(_START), is_off=True
            )
        if isinstance(cause, TimeoutError):
            return ManagementUnavailable(
                f"the management API at {self._base} does not answer in time", fix=self._or_without("raise --timeout")
            )
        return ManagementUnavailable(
            f"the management API at {self._base} can't be reached: {cause}", fix=self._or_without(_SWITCH_ON)
        )


def _heard_of(found: Mapping[str, Any]) -> tuple[int, int]:
    held = sum(found.get(f"messages_{why}") or 0 for why in ("unacknowledged", "delayed", "dlx"))
    # The sum is renewed apart from its parts, and may be behind them.
    return max(found.get("messages") or 0, held), held
