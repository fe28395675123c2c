"""The broker's errors in our words; the texts are RabbitMQ's own, from 3.10.8 and 4.x."""

import socket
import ssl

import pika.exceptions as pe
import pytest
from delayctl.topology.access import Access, Tls, access_from
from delayctl.topology.amqp import AmqpSession, conflict, parameters, vhost_trouble
from delayctl.topology.errors import (
    AuthenticationFailed,
    BrokerError,
    NoMoreConnections,
    NotPermitted,
    Refused,
    Unreachable,
    VhostMissing,
)
from pika import PlainCredentials

SECRET = "s3cr3t"
ACCESS = access_from(f"amqp://ops:{SECRET}@mq:1234/shop", timeout_s=3)


class Failing(AmqpSession):
    """A session whose connection fails in a given way, at the place where pika would."""

    def __init__(self, access: Access, error: BaseException) -> None:
        super().__init__(access)
        self._error = error

    def _open(self) -> "None":  # type: ignore[override]  # It never returns.
        raise self._error


def translated(error: BaseException) -> BrokerError:
    """What a caller of the session meets."""
    with pytest.raises(BrokerError) as caught:
        Failing(ACCESS, error).count("delay.1m.queue")
    assert caught.value.__cause__ is error
    return caught.value


class TestConflicts:
    """A 406 is turned into a difference that can be read."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'delay.1m.queue' in vhost '/': "
                "received '6000' but current is '5000'",
                "queue delay.1m.queue exists with another x-message-ttl: 5000 on the broker, 6000 in the file",
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': "
                "received none but current is the value '5000' of type 'signedint'",
                "queue q exists with another x-message-ttl: 5000 on the broker, not set in the file",
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': "
                "received the value 'quorum' of type 'longstr' but current is none",
                "queue q exists with another x-queue-type: not set on the broker, quorum in the file",
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost 'a': "
                "received 'false' but current is 'true'",
                "queue q exists with another durable: true on the broker, false in the file",
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'it's mine' in vhost 'it's': "
                "received 'fanout' but current is 'topic'",
                "exchange it's mine exists with another type: topic on the broker, fanout in the file",
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'e' in vhost '/': "
                "received the value 'none.exchange' of type 'longstr' but current is none",
                "exchange e exists with another alternate-exchange: not set on the broker, none.exchange in the file",
            ),
        ],
    )
    def test_both_sides_are_named(self, text: str, expected: str) -> None:
        """What is on the broker and what is in the file."""
        assert conflict(text) == expected

    @pytest.mark.parametrize(
        "text", ["", "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty", "NOT_FOUND - no queue 'q' in vhost '/'"]
    )
    def test_another_refusal_is_no_conflict(self, text: str) -> None:
        """It is left to be shown as it is."""
        assert conflict(text) is None


class TestRefusals:
    """One operation was refused; the rest may go on."""

    @pytest.mark.parametrize(
        ("code", "text", "what"),
        [
            (404, "NOT_FOUND - no exchange 'nope' in vhost '/'", "no exchange 'nope' in vhost '/'"),
            (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty", "queue 'q' in vhost '/' not empty"),
            (406, "PRECONDITION_FAILED - exchange 'ex' in vhost '/' in use", "exchange 'ex' in vhost '/' in use"),
            (405, "RESOURCE_LOCKED - cannot obtain exclusive access", "cannot obtain exclusive access"),
            (406, "a - b", "a - b"),
            (499, "", "the broker answered 499"),
        ],
    )
    def test_the_broker_is_quoted_without_its_shouting(self, code: int, text: str, what: str) -> None:
        """The code stays at hand."""
        error = translated(pe.ChannelClosedByBroker(code, text))

        assert (type(error), error.what, getattr(error, "code", None)) == (Refused, what, code)

    def test_a_conflict_is_a_difference(self) -> None:
        """As it is read best."""
        text = "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"

        assert translated(pe.ChannelClosedByBroker(406, text)).what == (
            "queue q exists with another durable: true on the broker, false in the file"
        )

    @pytest.mark.parametrize(
        ("whose", "raised"),
        [
            (
                "vhost 'shop'",
                """rabbitmqctl set_vhost_limits -p shop '{"max-queues": 6}', with the other limits that this virtual host has""",
            ),
            ("cluster", "cluster_queue_limit = 6 in rabbitmq.conf"),
        ],
    )
    def test_a_limit_of_queues_can_be_raised(self, whose: str, raised: str) -> None:
        """The command that would free queues needs one itself."""
        text = f"cannot declare queue 'delay.lock.queue': queue limit in {whose} (5) is reached"

        error = translated(pe.ChannelClosedByBroker(406, f"PRECONDITION_FAILED - {text}"))

        assert (type(error), error.what, getattr(error, "code", None)) == (Refused, text, 406)
        assert (
            error.fix
            == f"delete a queue that nobody needs, or let an administrator raise the limit by one at least: {raised}"
        )

    def test_what_the_broker_can_not_do_is_a_refusal(self) -> None:
        """Although it closes the whole connection for it."""
        text = "NOT_IMPLEMENTED - queue.delete operations with if-empty flag set are not supported by quorum queues"

        error = translated(pe.ConnectionClosedByBroker(540, text))

        assert isinstance(error, Refused)
        assert error.what == text.removeprefix("NOT_IMPLEMENTED - ")

    def test_a_queue_that_may_not_be_transient_is_a_refusal(self) -> None:
        """RabbitMQ closes the whole connection over it, and speaks of features."""
        text = (
            "INTERNAL_ERROR - Feature `transient_nonexcl_queues` is deprecated. By default, this feature can't be used."
        )

        error = translated(pe.ConnectionClosedByBroker(541, text))

        assert isinstance(error, Refused)
        assert (error.what, error.code) == ("this broker takes no queues that don't survive its restart", 541)
        assert str(error).splitlines()[-1].startswith("  fix: write durable: true, or ")

    def test_a_missing_permission_names_the_user_and_the_cure(self) -> None:
        """An administrator can paste it."""
        text = "ACCESS_REFUSED - configure access to queue 'q' in vhost 'shop' refused for user 'ops'"

        error = translated(pe.ChannelClosedByBroker(403, text))

        assert isinstance(error, NotPermitted)
        assert str(error) == (
            f"Error: user 'ops' is not permitted: {text.removeprefix('ACCESS_REFUSED - ')}\n"
            "  fix: let an administrator grant it: rabbitmqctl set_permissions -p shop ops CONFIGURE WRITE READ"
        )


class TestConnections:
    """No connection, and why."""

    @pytest.mark.parametrize("error", [pe.AuthenticationError("x"), pe.ProbableAuthenticationError("x")])
    def test_a_refused_login_names_the_user(self, error: Exception) -> None:
        """And all the places where the password may come from."""
        found = translated(pe.AMQPConnectionError(error))

        assert isinstance(found, AuthenticationFailed)
        assert found.what == "the broker at amqp://mq:1234 refuses user 'ops' or the password"

    def test_a_missing_virtual_host_is_named(self) -> None:
        """With the command that makes it."""
        text = "NOT_ALLOWED - vhost shop not found"

        found = translated(pe.ConnectionClosedByBroker(530, text))

        assert isinstance(found, VhostMissing)
        assert found.what == "there is no virtual host 'shop'"

    def test_a_closed_virtual_host_is_named(self) -> None:
        """It is there, and not for this user."""
        found = translated(
            pe.ConnectionClosedByBroker(530, "NOT_ALLOWED - access to vhost 'shop' refused for user 'ops'")
        )

        assert isinstance(found, NotPermitted)
        assert found.what == "user 'ops' has no access to virtual host 'shop'"

    @pytest.mark.parametrize(
        ("text", "raised"),
        [
            (
                "access to vhost 'shop' refused for user 'ops': connection limit (2) is reached",
                """rabbitmqctl set_vhost_limits -p shop '{"max-connections": 12}', with the other limits that this virtual host has""",
            ),
            (
                "connection refused for user 'ops': user connection limit (2) is reached",
                """rabbitmqctl set_user_limits ops '{"max-connections": 12}'""",
            ),
            ("connection refused: node connection limit (2) is reached", "connection_max = 12 in rabbitmq.conf"),
        ],
    )
    def test_a_limit_of_connections_can_be_raised(self, text: str, raised: str) -> None:
        """Whose limit it is says how."""
        closed = pe.ConnectionClosedByBroker(530, f"NOT_ALLOWED - {text}")

        found = translated(pe.ProbableAccessDeniedError(repr(closed)))

        assert isinstance(found, NoMoreConnections)
        assert found.what == f"the broker takes no more connections: {text}"
        assert found.fix == f"close some, or let an administrator raise the limit: {raised}"

    @pytest.mark.parametrize("limit", ["limit of (2)", "limit of 2"])
    def test_a_limit_of_channels_is_no_closed_virtual_host(self, limit: str) -> None:
        """RabbitMQ closes the connection over it, with the code of one."""
        text = f"number of channels opened for user 'ops' has reached the maximum allowed user {limit}"

        found = translated(pe.ConnectionClosedByBroker(530, f"NOT_ALLOWED - {text}"))

        assert isinstance(found, NoMoreConnections)
        assert found.what == f"the broker takes no more channels: {text}"

    @pytest.mark.parametrize(
        ("text", "vhost", "user", "what"),
        [
            ("vhost ratelimit not found", "ratelimit", "ops", "there is no virtual host 'ratelimit'"),
            (
                "access to vhost 'ratelimit' refused for user 'limiter'",
                "ratelimit",
                "limiter",
                "user 'limiter' has no access to virtual host 'ratelimit'",
            ),
            (
                "access to vhost 'a not found' refused for user 'ops'",
                "a not found",
                "ops",
                "user 'ops' has no access to virtual host 'a not found'",
            ),
            ("vhost not found", "shop", "ops", "there is no virtual host 'shop'"),
        ],
    )
    def test_a_name_is_not_taken_for_what_happened(self, text: str, vhost: str, user: str, what: str) -> None:
        """Names may have the words of the broker's other sentences in them."""
        assert vhost_trouble(f"NOT_ALLOWED - {text}", vhost, user).what == what

    @pytest.mark.parametrize(
        ("text", "fix"),
        [
            ("vhost my shop not found", "create it (rabbitmqctl add_vhost 'my shop'), or name another"),
            (
                "access to vhost 'my shop' refused for user 'o p s'",
                "let an administrator grant it: rabbitmqctl set_permissions -p 'my shop' 'o p s' CONFIGURE WRITE READ",
            ),
        ],
    )
    def test_names_with_blanks_can_be_typed_as_they_stand(self, text: str, fix: str) -> None:
        """As one word each."""
        assert (vhost_trouble(f"NOT_ALLOWED - {text}", "my shop", "o p s").fix or "").startswith(fix)

    @pytest.mark.parametrize(
        ("error", "what"),
        [
            (ConnectionRefusedError(), "nothing listens at amqp://mq:1234"),
            (socket.gaierror(-2, "Name or service not known"), "the host name 'mq' is not known"),
            (TimeoutError(), "amqp://mq:1234 does not answer within 3s"),
            (
                pe.StreamLostError("Stream connection lost"),
                "the connection to amqp://mq:1234 broke: Stream connection lost",
            ),
            (EOFError(), "the connection to amqp://mq:1234 broke: EOFError"),
            (pe.IncompatibleProtocolError("x"), "the connection to amqp://mq:1234 broke: x"),
            (
                pe.ConnectionClosedByBroker(320, "CONNECTION_FORCED - broker forced connection closure"),
                "the connection to amqp://mq:1234 failed: CONNECTION_FORCED - broker forced connection closure",
            ),
            (OSError(113, "No route to host"), "the connection to amqp://mq:1234 failed: No route to host"),
        ],
        ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
    )
    def test_the_real_cause_is_told(self, error: Exception, what: str) -> None:
        """However deep pika has wrapped it."""
        found = translated(pe.AMQPConnectionError(pe.AMQPConnectionError(error)))

        assert isinstance(found, Unreachable)
        assert found.what == what
        assert found.fix

    def test_a_port_without_tls_is_told(self) -> None:
        """With OpenSSL's reason."""
        error = ssl.SSLError(1, "wrong version number")
        error.reason = "WRONG_VERSION_NUMBER"

        assert translated(error).what == "TLS with amqp://mq:1234 fails: WRONG_VERSION_NUMBER"

    def test_a_certificate_that_can_not_be_verified_is_told(self) -> None:
        """With OpenSSL's reason."""
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "self-signed certificate"

        assert translated(error).what == (
            "the certificate of amqp://mq:1234 can't be verified: self-signed certificate"
        )

    def test_a_client_certificate_that_is_asked_for_is_told(self) -> None:
        """TLS 1.3 says so only once the connection stands."""
        error = ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required")

        assert translated(pe.StreamLostError(f"Stream connection lost: {error!r}", error)).what == (
            "amqp://mq:1234 asks for a client certificate"
        )

    def test_no_error_shows_the_password(self) -> None:
        """Whatever happened."""
        errors: list[Exception] = [pe.AuthenticationError("x"), pe.ChannelClosedByBroker(403, "x"), TimeoutError()]

        assert SECRET not in "".join(f"{translated(error)!s}{translated(error)!r}" for error in errors)


class TestParameters:
    """What pika is told."""

    def test_an_access_becomes_connection_parameters(self) -> None:
        """Host, port, virtual host, user, and the timeout in both places."""
        found = parameters(ACCESS)

        assert (found.host, found.port, found.virtual_host, found.socket_timeout) == ("mq", 1234, "shop", 3)
        assert found.credentials == PlainCredentials("ops", SECRET, erase_on_connect=True)
        assert found.ssl_options is None

    def test_no_virtual_host_is_the_default_one(self) -> None:
        """As everywhere in RabbitMQ."""
        assert parameters(access_from("amqp://mq")).virtual_host == "/"

    def test_tls_goes_by_the_hosts_name(self) -> None:
        """The certificate is checked against it."""
        found = parameters(access_from("amqps://mq", tls=Tls(verify=False)))

        assert found.ssl_options is not None
        assert found.ssl_options.server_hostname == "mq"

    def test_the_password_is_erased_once_it_was_used(self) -> None:
        """It does not stay in pika's memory."""
        assert parameters(ACCESS).credentials.erase_on_connect
