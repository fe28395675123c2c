"""Declarations over AMQP; pika's errors become ours here and nowhere else."""

import ast
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

import pika
import pika.exceptions
from delayctl.topology.access import Access
from delayctl.topology.arguments import exchange_arguments, queue_arguments
from delayctl.topology.errors import AuthenticationFailed, BrokerError, NotPermitted, Refused, Unreachable, VhostMissing
from delayctl.topology.limits import connection_limit, queue_limit
from delayctl.topology.live import Backlog
from delayctl.topology.model import Binding, Exchange, Kind, Queue, thaw
from delayctl.topology.wording import as_text, command
from pika.adapters.blocking_connection import BlockingChannel
from pika.adapters.utils.connection_workflow import AMQPConnectorException

Result = TypeVar("Result")
NOT_IMPLEMENTED = 540
# pika raises its connection workflow's errors and the system's own beside its documented ones.
PIKA_ERRORS = (pika.exceptions.AMQPError, AMQPConnectorException, OSError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Peeked:
    """A message that was looked at and put back."""

    exchange: str
    key: str
    headers: Mapping[str, Any]


class AmqpSession:
    """One connection and one channel; the channel is opened again after the broker closed it over an error.

    Threads may share it: they take turns.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._turn = threading.RLock()
        self._connection: pika.BlockingConnection | None = None
        self._channel: BlockingChannel | None = None

    def __enter__(self) -> "AmqpSession":
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect now; whatever is asked of a session connects it too."""
        self._open()

    def close(self) -> None:
        """Close the connection; one that is gone already is as good as closed."""
        if self._connection is not None and self._connection.is_open:
            try:
                self._connection.close()
            except pika.exceptions.AMQPError:
                self._connection = None

    def put(self, resource: Exchange | Queue | Binding) -> None:
        """Declare or bind; what is there already with the same arguments is left as it is."""
        self._call(lambda channel: _say(channel, resource))

    def put_all(self, resources: Iterable[Exchange | Queue | Binding]) -> None:
        """Declare or bind many, without waiting for the answer to each; where one is refused, some of the others were made."""
        self._call(lambda channel: _say_all(channel, resources))

    def unbind(self, binding: Binding) -> None:
        """Unbind, or do nothing where there is no such binding."""
        arguments = {name: thaw(value) for name, value in binding.arguments}
        if binding.kind == "queue":
            self._call(
                lambda channel: channel.queue_unbind(binding.destination, binding.source, binding.key, arguments)
            )
        else:
            self._call(
                lambda channel: channel.exchange_unbind(binding.destination, binding.source, binding.key, arguments)
            )

    def delete_exchange(self, name: str, *, if_unused: bool) -> None:
        """Delete an exchange; with `if_unused` the broker refuses while bindings begin at it."""
        self._call(lambda channel: channel.exchange_delete(name, if_unused=if_unused))

    def delete_queue(self, name: str, *, guarded: bool) -> None:
        """Delete a queue; guarded, the broker refuses while it holds messages or has consumers."""
        self._call(lambda channel: channel.queue_delete(name, if_unused=guarded, if_empty=guarded))

    def count(self, queue: str) -> Backlog:
        """Messages that are ready and consumers, as of now."""
        answer = self._call(lambda channel: channel.queue_declare(queue, passive=True))
        return Backlog(answer.method.message_count, answer.method.consumer_count)

    def peek(self, queue: str, most: int) -> list[Peeked]:
        """Look at the first messages of a queue and put them back, each into its place and marked as redelivered."""
        peeked: list[Peeked] = []
        while len(peeked) < most:
            method, properties, _ = self._call(lambda channel: channel.basic_get(queue))
            if method is None or properties is None:
                break
            way = _as_text(method.exchange or ""), _as_text(method.routing_key or "")
            peeked.append(Peeked(*way, _as_text(properties.headers or {})))
        self._call(lambda channel: channel.close())  # What is not acknowledged goes back.
        return peeked

    def check(self, kind: Kind, name: str) -> None:
        """Raise Refused where there is no such exchange or queue."""
        if kind == "queue":
            self._call(lambda channel: channel.queue_declare(name, passive=True))
        else:
            self._call(lambda channel: channel.exchange_declare(name, passive=True))

    def version(self) -> str:
        """The broker's version; empty where it does not say."""
        inside: Any = self._open().connection  # pika shows nowhere else what the broker says of itself.
        said = inside._impl.server_properties or {}
        return str(said.get("version", ""))

    def hold_exclusive(self, queue: str) -> None:
        """Declare a queue that only this connection may touch and that goes when it goes."""
        self._call(lambda channel: channel.queue_declare(queue, exclusive=True))

    def keep_alive(self) -> None:
        """Answer heartbeats; raises Unreachable when the connection is gone."""
        try:
            self._open().connection.process_data_events(0)
        except PIKA_ERRORS as error:
            raise _translated(error, self._access) from error

    def _call(self, action: Callable[[BlockingChannel], Result]) -> Result:
        try:
            with self._turn:
                return action(self._open())
        except PIKA_ERRORS as error:
            raise _translated(error, self._access) from error

    def _open(self) -> BlockingChannel:
        try:
            if self._connection is None or not self._connection.is_open:
                self._connection = pika.BlockingConnection(parameters(self._access))
                self._channel = None
            if self._channel is None or not self._channel.is_open:
                self._channel = self._connection.channel()
            return self._channel
        except PIKA_ERRORS as error:
            raise _translated(error, self._access) from error


def _say_all(channel: BlockingChannel, resources: Iterable[Exchange | Queue | Binding]) -> None:
    inside: Any = (
        channel  # pika's blocking channel waits for every answer; the one that it is made of does not ask for any.
    )
    for resource in resources:
        _say(inside._impl, resource)
    channel.basic_qos(
        0
    )  # Changes nothing; an answer means that all before it were taken, as a refusal closes the channel.


def _say(channel: BlockingChannel, resource: Exchange | Queue | Binding) -> None:
    match resource:
        case Exchange():
            channel.exchange_declare(
                resource.name,
                resource.type,
                durable=resource.durable,
                auto_delete=resource.auto_delete,
                internal=resource.internal,
                arguments=exchange_arguments(resource),
            )
        case Queue():
            channel.queue_declare(
                resource.name,
                durable=resource.durable,
                auto_delete=resource.auto_delete,
                arguments=queue_arguments(resource),
            )
        case Binding(source, kind, destination, key):
            bind = channel.queue_bind if kind == "queue" else channel.exchange_bind
            bind(destination, source, key, {name: thaw(value) for name, value in resource.arguments})
        case _:
            assert_never(resource)


def parameters(access: Access) -> pika.ConnectionParameters:
    """Pika's view of an access."""
    return pika.ConnectionParameters(
        host=access.host,
        port=access.port,
        virtual_host=access.vhost or "/",
        credentials=pika.PlainCredentials(
            access.credentials.username, access.credentials.password, erase_on_connect=True
        ),
        ssl_options=pika.SSLOptions(access.tls.context(), access.host) if access.is_tls else None,
        socket_timeout=access.timeout_s,
        stack_timeout=access.timeout_s + 5,
        blocked_connection_timeout=60,
        client_properties={"connection_name": "delayctl"},
    )


def _as_text(value: Any) -> Any:
    """What pika leaves as bytes because it is no UTF-8, as text; anybody may send such keys and headers."""
    if isinstance(value, bytes):
        return as_text(value)
    if isinstance(value, dict):
        return {_as_text(name): _as_text(each) for name, each in value.items()}
    return [_as_text(each) for each in value] if isinstance(value, list) else value


def _translated(error: Exception, access: Access) -> BrokerError:
    """Our error for one of pika's or the system's."""
    cause = _innermost(error)
    code, text = getattr(cause, "reply_code", None), getattr(cause, "reply_text", "") or ""
    user, vhost = access.credentials.username, access.vhost or "/"
    if isinstance(cause, pika.exceptions.AuthenticationError | pika.exceptions.ProbableAuthenticationError):
        return wrong_password(access)
    if isinstance(cause, pika.exceptions.ProbableAccessDeniedError) or code == 530:
        return vhost_trouble(_said(cause), vhost, user)
    if code == 403:
        return NotPermitted(
            f"user '{user}' is not permitted: {_readable(text)}",
            fix=f"let an administrator grant it: {_grant(vhost, user)}",
        )
    if isinstance(cause, pika.exceptions.ChannelClosedByBroker) or code == NOT_IMPLEMENTED:
        if difference := conflict(text):
            fix = "change the file to match, or apply with the management API, which replaces what is empty"
            return Refused(difference, code=code, fix=fix)
        return queue_limit(text, vhost, code) or Refused(_readable(text) or f"the broker answered {code}", code=code)
    if "transient_nonexcl_queues" in text:
        # RabbitMQ closes the whole connection (541) over it.
        return Refused(
            "this broker takes no queues that don't survive its restart",
            code=code,
            fix="write durable: true, or let an administrator set deprecated_features.permit.transient_nonexcl_queues = true",
        )
    return unreachable(cause, access)


def wrong_password(access: Access) -> AuthenticationFailed:
    """The broker does not let us in."""
    return AuthenticationFailed(
        f"the broker at {access.address} refuses user '{access.credentials.username}' or the password",
        fix="check the user and password in --url, DELAYCTL_USERNAME/DELAYCTL_PASSWORD or --credentials-file; guest may log in from localhost only",
    )


def vhost_trouble(text: str, vhost: str, user: str) -> BrokerError:
    """The virtual host is not there, full, or closed to us."""
    if full := connection_limit(text, vhost, user):
        return full
    if _NO_VHOST.search(text):
        return VhostMissing(
            f"there is no virtual host '{vhost}'",
            fix=f"create it ({command('rabbitmqctl', 'add_vhost', vhost)}), or name another with vhost: in the file or --vhost",
        )
    return NotPermitted(
        f"user '{user}' has no access to virtual host '{vhost}'",
        fix=f"let an administrator grant it: {_grant(vhost, user)}",
    )


def _grant(vhost: str, user: str) -> str:
    return command("rabbitmqctl", "set_permissions", "-p", vhost, user, "CONFIGURE", "WRITE", "READ")


def unreachable(cause: BaseException, access: Access) -> Unreachable:
    """No connection, or none any more."""
    # Of what an error carries, such as (320, "CONNECTION_FORCED …"), the text says most.
    text = next((arg for arg in cause.args if isinstance(arg, str)), str(cause)) or type(cause).__name__
    if "certificate required" in text or "CERTIFICATE_REQUIRED" in text:
        return Unreachable(
            f"{access.address} asks for a client certificate", fix="name it with --cert-file and --key-file"
        )
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"the certificate of {access.address} can't be verified: {cause.verify_message}"
        return Unreachable(
            why, fix="name the CA with --ca-file, or connect by the name that the certificate was made for"
        )
    if isinstance(cause, ssl.SSLError):
        why = f"TLS with {access.address} fails: {cause.reason or cause}"
        return Unreachable(
            why,
            fix="check that the port speaks TLS (5671), and --cert-file if the broker asks for a client certificate",
        )
    if isinstance(cause, socket.gaierror | UnicodeError):
        return Unreachable(f"the host name '{access.host}' is not known", fix="check --url or DELAYCTL_URL")
    if isinstance(cause, ConnectionRefusedError):
        return Unreachable(
            f"nothing listens at {access.address}", fix="start the broker, or correct --url or DELAYCTL_URL"
        )
    if isinstance(cause, TimeoutError | AMQPConnectorException):
        return Unreachable(
            f"{access.address} does not answer within {access.timeout_s:g}s",
            fix="check host, port and firewall, or raise --timeout",
        )
    if isinstance(
        cause,
        pika.exceptions.IncompatibleProtocolError | pika.exceptions.StreamLostError | EOFError | ConnectionResetError,
    ):
        why = f"the connection to {access.address} broke: {text}"
        return Unreachable(why, fix=_BROKEN_TLS if access.is_tls else _BROKEN)
    return Unreachable(
        f"the connection to {access.address} failed: {text}",
        fix="check --url, and the broker's log",
    )


def _said(cause: BaseException) -> str:
    """The broker's own words; where it refuses a virtual host, pika keeps them inside of quotes."""
    text = str(getattr(cause, "reply_text", "") or next(iter(cause.args), ""))
    quotes = _IN_QUOTES.search(text)
    return str(ast.literal_eval(quotes[1])) if quotes else text


def _innermost(error: BaseException) -> BaseException:
    """What really happened: pika wraps causes in arguments and in `exception` attributes."""
    seen = 0
    while seen < 10:
        seen += 1
        inner = getattr(error, "exception", None) or next(
            (arg for arg in error.args if isinstance(arg, BaseException)), None
        )
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error


_IN_QUOTES = re.compile(r"""^ConnectionClosedByBroker: \(\d+\) ('.*'|".*")$""")
_NO_VHOST = re.compile(r"NOT_ALLOWED - vhost (.* )?not found")  # Not every broker repeats the name.
_BROKEN = "run it again once an AMQP 0-9-1 broker answers on this port (amqps:// for TLS); its log may say more"
_BROKEN_TLS = (
    "name a client certificate with --cert-file if the broker asks for one; its log may say more; then run it again"
)
_INEQUIVALENT = re.compile(
    r"inequivalent arg '(?P<name>[^']+)' for (?P<kind>\w+) '(?P<object>.+)' in vhost '.*': "
    r"received (?:the value )?(?P<received>.+?)(?: of type '\w+')? but current is (?:the value )?(?P<current>.+?)(?: of type '\w+')?$"
)


def conflict(text: str) -> str | None:
    """A 406 as a difference that can be read, or None where it is about something else."""
    match = _INEQUIVALENT.search(text)
    if not match:
        return None
    sides = (match["current"], match["received"])
    current, received = ("not set" if side == "none" else side.strip("'") for side in sides)
    return f"{match['kind']} {match['object']} exists with another {match['name']}: {current} on the broker, {received} in the file"


def _readable(text: str) -> str:
    """The broker's sentence without its shouting prefix."""
    head, dash, rest = text.partition(" - ")
    return rest if dash and head.replace("_", "").isupper() else text
