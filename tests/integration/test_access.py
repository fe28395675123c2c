"""Getting in: each thing that can be wrong has a message of its own, with the fix and without the password."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from testbed import native_node
from testbed.needs import needed
from tests.conftest import TopologyFile
from tests.support.commands import Ran, delayctl, delayctl_process
from tests.support.rabbit import Rabbit
from tests.support.tls_proxy import TlsProxy

FILE = "version: 1\ndelay: {levels: [1m]}\nroutes: [{key: a, delay: 1m, to: a.queue}]\n"
TWO_LEVELS = """version: 1
delay: {{levels: [1m, 2m]}}
exchanges: {{orders.exchange: {{}}}}
routes: [{{from: orders.exchange, key: a, delay: {level}, to: a.queue}}]
"""
SECRET = "s3cret-pa55"


@pytest.fixture
def file(topology: TopologyFile) -> str:
    """A small topology."""
    return topology.write(FILE)


@pytest.fixture
def user(rabbit: Rabbit) -> Iterator[str]:
    """A user that may manage, and may do everything in this virtual host."""
    name = f"user-{rabbit.vhost}"
    rabbit.api("PUT", f"users/{name}", {"password": SECRET, "tags": "policymaker"})
    rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": ".*", "write": ".*", "read": ".*"})
    yield name
    rabbit.api("DELETE", f"users/{name}")


def url_for(rabbit: Rabbit, user: str, password: str = SECRET) -> str:
    """The broker's URL with other credentials."""
    return f"amqp://{user}:{password}@{rabbit.broker.url.rpartition('@')[2]}"


def as_user(rabbit: Rabbit, user: str, *arguments: str, password: str = SECRET) -> Ran:
    """Run a command as somebody else."""
    address = ("--url", url_for(rabbit, user, password), "--management-url", rabbit.broker.management_url)
    ran = delayctl(*arguments, *address, "--vhost", rabbit.vhost)
    assert SECRET not in ran.out + ran.err
    return ran


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.parametrize("command", ["plan", "status", "explain", "validate", "import", "permissions"])
def test_no_management_api(file: str, command: str) -> None:
    """Going without it is an advice to those who can: apply, and plan before it."""
    options = {"explain": ("--live", "--level", "1m"), "validate": ("--live",)}.get(command, ())
    options = ("--check", "--user", "shop", "--role", "publisher") if command == "permissions" else options
    files = () if command == "import" else (file,)
    nowhere = {f"http://127.0.0.1:{free_port()}": "no management API listens at"}
    for url, what in {**nowhere, "http://no-such-host.invalid:15672": "the host name in http://no-such"}.items():
        ran = delayctl(command, *files, *options, "--management-url", url)

        assert (ran.code, ran.out) == (1, "")
        assert what in ran.err
        assert ("delayctl apply --no-management" in ran.err) is (command == "plan")
        assert "fix: " in ran.err


def test_nothing_listens(file: str) -> None:
    """A broker that is not there is said so, with the address and without credentials."""
    port = free_port()
    ran = delayctl("apply", file, "--yes", "--url", f"amqp://me:{SECRET}@127.0.0.1:{port}/", "--no-management")

    assert ran.code == 1
    assert f"Error: nothing listens at amqp://127.0.0.1:{port}" in ran.err
    assert "fix: start the broker" in ran.err
    assert SECRET not in ran.err


def test_an_unknown_host(file: str) -> None:
    """A host name that can't be resolved is named."""
    ran = delayctl("apply", file, "--yes", "--url", "amqp://no-such-host.invalid/", "--no-management")

    assert ran.code == 1
    assert "Error: the host name 'no-such-host.invalid' is not known" in ran.err


def test_something_that_never_answers(file: str) -> None:
    """A port that accepts and says nothing ends in a time-out, not in a hang."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"amqp://127.0.0.1:{listener.getsockname()[1]}/"
        ran = delayctl("apply", file, "--yes", "--url", url, "--no-management", "--timeout", "0.5")

    assert ran.code == 1
    assert "does not answer within 0.5s" in ran.err


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("apply", "--yes", "--no-management")])
def test_a_wrong_password(rabbit: Rabbit, user: str, file: str, command: tuple[str, ...]) -> None:
    """A wrong password is told from everything else, over HTTP and over AMQP."""
    ran = as_user(rabbit, user, command[0], file, *command[1:], password="wrong")

    assert ran.code == 1
    assert f"refuses user '{user}' or the password" in ran.err


@pytest.mark.parametrize(
    "command",
    [
        ("plan",),
        ("apply", "--yes"),
        ("apply", "--yes", "--no-management"),
        ("destroy", "--yes"),
        ("verify",),
        ("capacity", "--live"),
        ("pending",),
    ],
)
def test_no_such_virtual_host(rabbit: Rabbit, file: str, command: tuple[str, ...]) -> None:
    """A virtual host that does not exist is told from one without access, and nothing else is said of what can't be there."""
    address = ("--url", rabbit.broker.url, "--management-url", rabbit.broker.management_url)
    ran = delayctl(command[0], file, *command[1:], *address, "--vhost", "no-such-vhost")

    assert ran.code == 1
    assert "Error: there is no virtual host 'no-such-vhost'" in ran.err
    assert "no record" not in ran.err
    assert "rabbitmqctl add_vhost no-such-vhost" in ran.err


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes", "--no-management"), ("pending",)])
def test_a_virtual_host_with_a_limit_in_its_name_is_just_missing(
    rabbit: Rabbit, file: str, command: tuple[str, ...]
) -> None:
    """No limit is spoken of where there is none."""
    address = ("--url", rabbit.broker.url, "--management-url", rabbit.broker.management_url)
    ran = delayctl(command[0], file, *command[1:], *address, "--vhost", "rate limit")

    assert ran.code == 1
    assert (
        "Error: there is no virtual host 'rate limit'\n  fix: create it (rabbitmqctl add_vhost 'rate limit')" in ran.err
    )


@pytest.mark.parametrize("command", ["apply", "destroy"])
def test_there_is_no_room_for_the_lock(rabbit: Rabbit, file: str, command: str) -> None:
    """The lock is a queue, and the limit of queues is said to be in its way, with what raises it."""
    rabbit.delayctl("apply", file, "--yes")
    rabbit.api("PUT", "vhost-limits/{vhost}/max-queues", {"value": 3})

    ran = rabbit.delayctl(command, file, "--yes")

    limits = f"""rabbitmqctl set_vhost_limits -p {rabbit.vhost} '{{"max-queues": 4}}'"""
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-2:] == [
        "Error: the lock of this topology can't be taken, it is a queue as long as delayctl works: cannot declare queue"
        f" 'delay.lock.queue': queue limit in vhost '{rabbit.vhost}' (3) is reached",
        "  fix: delete a queue that nobody needs, or let an administrator raise the limit by one at least:"
        f" {limits}, with the other limits that this virtual host has",
    ]


@pytest.mark.parametrize("limit", [2, 3])
def test_a_limit_of_connections_slows_apply_down_and_no_more(
    rabbit: Rabbit, topology: TopologyFile, limit: int
) -> None:
    """One connection for the lock and one to work on are enough, however many it would like to have."""
    levels = ", ".join(f"{minutes}m" for minutes in range(1, 61))
    rabbit.api("PUT", "vhost-limits/{vhost}/max-connections", {"value": limit})

    ran = rabbit.delayctl("apply", topology.write(f"version: 1\ndelay: {{levels: [{levels}]}}\n"), "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "Applied: 184 added, 0 changed, 0 replaced, 0 deleted."


def test_a_user_without_access_to_the_virtual_host(rabbit: Rabbit, user: str, file: str) -> None:
    """A user without any permission here is told to ask for it."""
    rabbit.api("DELETE", f"permissions/{{vhost}}/{user}")

    ran = as_user(rabbit, user, "apply", file, "--yes")

    assert ran.code == 1
    assert f"user '{user}'" in ran.err
    assert f"'{rabbit.vhost}'" in ran.err
    assert "rabbitmqctl set_permissions" in ran.err


def test_a_user_who_may_not_declare(rabbit: Rabbit, user: str, file: str) -> None:
    """The first refused declaration stops what depends on it; nothing can enter what has no way out."""
    permissions = {"configure": "^delay\\.(lock|unrouted)", "write": ".*", "read": ".*"}
    rabbit.api("PUT", f"permissions/{{vhost}}/{user}", permissions)

    ran = as_user(rabbit, user, "apply", file, "--yes")

    assert ran.code == 3
    assert "failed queue a.queue: user" in ran.out
    assert "skipped exchange delay.1m.exchange: an earlier change failed" in ran.out
    assert [exchange for exchange in rabbit.definitions()["exchanges"] if "delay.1m" in exchange] == []


def test_a_policymaker_needs_no_administrator(rabbit: Rabbit, user: str, file: str) -> None:
    """Whoever may not read definitions is served by the single lists."""
    applied = as_user(rabbit, user, "apply", file, "--yes")
    planned = as_user(rabbit, user, "plan", file, "--detailed-exitcode")
    destroyed = as_user(rabbit, user, "destroy", file, "--yes")

    assert (applied.code, planned.code, destroyed.code) == (0, 0, 0)
    assert rabbit.definitions()["queues"] == []


def test_a_user_without_management_applies_over_amqp(rabbit: Rabbit, user: str, file: str) -> None:
    """Without the management tag a first apply works over AMQP alone and says what it can't see; plan says what is missing."""
    rabbit.api("PUT", f"users/{user}", {"password": SECRET, "tags": ""})

    applied = as_user(rabbit, user, "apply", file, "--yes")
    again = as_user(rabbit, user, "apply", file, "--yes")
    planned = as_user(rabbit, user, "plan", file)

    assert (applied.code, again.code) == (0, 1)
    assert f"Warning: user '{user}' may not use the management API" in applied.err
    assert "can't be seen; nothing is removed" in applied.err
    assert f"what has to be removed, such as the old way of a route that moved: user '{user}' may not use" in again.err
    assert planned.code == 1
    assert "rabbitmqctl set_user_tags" in again.err
    assert "rabbitmqctl set_user_tags" in planned.err
    assert rabbit.queue("delay.1m.queue")["arguments"]["x-message-ttl"] == 60_000


def without_management(rabbit: Rabbit) -> tuple[str, ...]:
    """The options that lead to a broker whose management plugin is off."""
    return ("--url", rabbit.broker.url, "--vhost", rabbit.vhost, "--management-url", f"http://127.0.0.1:{free_port()}")


def test_the_management_plugin_is_off(rabbit: Rabbit, file: str) -> None:
    """Without the management API plan explains itself, and a first apply goes on over AMQP."""
    address = without_management(rabbit)

    planned = delayctl("plan", file, *address)
    applied = delayctl("apply", file, "--yes", *address)

    assert planned.code == 1
    assert f"Error: no management API listens at {address[-1]}/api" in planned.err
    assert "rabbitmq-plugins enable rabbitmq_management" in planned.err
    assert applied.code == 0
    assert "come twice" not in applied.err
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0


def test_what_was_applied_is_not_applied_again_without_seeing_it(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A route that moved would get its new way beside the old one: apply refuses before anything is done."""
    rabbit.delayctl("apply", topology.write(TWO_LEVELS.format(level="1m")), "--yes")
    before, address = rabbit.definitions(), without_management(rabbit)

    ran = delayctl("apply", topology.write(TWO_LEVELS.format(level="2m")), "--yes", *address)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "Error: without the management API apply can't see what has to be removed, such as the old way of a route that moved:"
        f" no management API listens at {address[-1]}/api\n"
        f"  at virtual host '{rabbit.vhost}', where exchange delay.exchange shows that it was applied before\n"
        "  fix: switch the API on (rabbitmq-plugins enable rabbitmq_management), or correct --management-url,"
        " or where additions alone are wanted apply without it: delayctl apply --no-management\n"
    )
    assert rabbit.definitions() == before


def test_routes_without_a_delay_are_not_applied_again_without_seeing_them(
    rabbit: Rabbit, topology: TopologyFile
) -> None:
    """There is no exit that tells; anything that the file declares does."""
    file = topology.write("version: 1\ndelay: none\nexchanges: {o: {}}\nroutes: [{from: o, key: k, to: q}]\n")
    address = without_management(rabbit)

    codes = [delayctl("apply", file, "--yes", *address).code for _ in range(2)]

    assert codes == [0, 1]


def test_additions_alone_are_made_for_whoever_wants_them(rabbit: Rabbit, topology: TopologyFile) -> None:
    """It is said that a route that moved keeps its old way."""
    rabbit.delayctl("apply", topology.write(TWO_LEVELS.format(level="1m")), "--yes")

    ran = rabbit.delayctl("apply", topology.write(TWO_LEVELS.format(level="2m")), "--yes", "--no-management")

    assert ran.code == 0
    assert "A route that moved keeps its old way too: its messages come twice." in ran.err


def test_a_conflict_over_amqp_alone_is_a_readable_difference(rabbit: Rabbit, file: str) -> None:
    """A 406 becomes a sentence about the setting, and nothing that depends on it is made."""
    with rabbit.channel() as channel:
        arguments = {"x-queue-type": "classic", "x-message-ttl": 5, "x-dead-letter-exchange": "delay.exchange"}
        channel.queue_declare("delay.1m.queue", durable=True, arguments=arguments)

    ran = rabbit.delayctl("apply", file, "--yes", "--no-management")

    assert ran.code == 3
    assert "queue delay.1m.queue exists with another x-message-ttl: 5 on the broker, 60000 in the file" in ran.out
    assert "skipped exchange delay.1m.exchange" in ran.out


def test_a_conflict_among_many_is_told_of_the_one_that_it_is_about(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Many queues are asked for at once, and the broker closes the channel over one of them."""
    with rabbit.channel() as channel:
        channel.queue_declare("delay.20s.queue", durable=True, arguments={"x-message-ttl": 5})
    levels = ", ".join(f"{seconds}s" for seconds in range(1, 51))
    file = topology.write(f"version: 1\ndelay: {{levels: [{levels}]}}\n")

    ran = rabbit.delayctl("apply", file, "--yes", "--no-management")

    failed = [line for line in ran.out.splitlines() if "failed" in line and "skipped" not in line]
    assert (ran.code, len(failed)) == (3, 1)
    assert "queue delay.20s.queue exists with another" in failed[0]
    names = {queue["name"] for queue in rabbit.api("GET", "queues/{vhost}")}
    assert {f"delay.{seconds}s.queue" for seconds in range(1, 51)} <= names


def test_policies_need_management(rabbit: Rabbit, topology: TopologyFile) -> None:
    """A file that asks for policies is refused over AMQP alone, before anything is declared."""
    file = topology.write(FILE.replace("levels:", "settings: policy, levels:"))

    ran = rabbit.delayctl("apply", file, "--yes", "--no-management")

    assert ran.code == 1
    assert "settings: policy needs the management API" in ran.err
    assert rabbit.definitions()["queues"] == []


def test_credentials_come_from_a_file(rabbit: Rabbit, user: str, file: str, tmp_path: Path) -> None:
    """The file's user wins over the URL's."""
    credentials = tmp_path / "credentials.yaml"
    credentials.write_text(f"username: {user}\npassword: {SECRET}\n")

    ran = as_user(rabbit, "nobody", "plan", file, "--credentials-file", str(credentials), password="nothing")

    assert ran.code == 0


def test_credentials_come_from_the_environment(
    rabbit: Rabbit, user: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So do the environment's."""
    monkeypatch.setenv("DELAYCTL_USERNAME", user)
    monkeypatch.setenv("DELAYCTL_PASSWORD", SECRET)

    assert as_user(rabbit, "nobody", "plan", file, password="nothing").code == 0


def test_a_management_url_that_is_something_else(rabbit: Rabbit, file: str) -> None:
    """A web server that is not RabbitMQ's is recognised."""
    ran = delayctl("plan", file, "--url", rabbit.broker.url, "--management-url", f"{rabbit.broker.management_url}/js")

    assert ran.code == 1
    assert "not as RabbitMQ's management API does" in ran.err


def test_a_management_url_with_api_at_its_end(rabbit: Rabbit, file: str) -> None:
    """It leads to the same place."""
    ran = delayctl("apply", file, "--yes", *rabbit.options, "--management-url", f"{rabbit.broker.management_url}/api/")

    assert ran.code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("destroy", "--yes"), ("status",)])
def test_a_management_url_with_a_path_too_many(rabbit: Rabbit, file: str, command: tuple[str, ...]) -> None:
    """RabbitMQ finds nothing there, and that is not taken for a broker that lacks something."""
    url = f"{rabbit.broker.management_url}/api/overview"
    ran = delayctl(command[0], file, *command[1:], *rabbit.options, "--management-url", url)

    assert ran.code == 1
    assert "answers, but not as RabbitMQ's management API does" in ran.err
    assert "fix: correct --management-url: it names what stands before /api" in ran.err


class TestTls:
    """amqps:// and https://, verified by default."""

    @pytest.fixture
    def authority(self) -> trustme.CA:
        """A certificate authority."""
        return trustme.CA()

    @pytest.fixture
    def proxies(self, rabbit: Rabbit, authority: trustme.CA) -> Iterator[tuple[str, ...]]:
        """TLS in front of AMQP and of the management API, both asking for a client certificate."""
        amqp = rabbit.broker.url.rpartition("@")[2].rstrip("/")
        http = rabbit.broker.management_url.rpartition("/")[2]
        with TlsProxy(authority, amqp) as amqps, TlsProxy(authority, http) as https:
            login = rabbit.broker.url.partition("//")[2].partition("@")[0]
            yield (
                *("--url", f"amqps://{login}@localhost:{amqps.port}/"),
                *("--management-url", f"https://localhost:{https.port}"),
                *("--vhost", rabbit.vhost),
            )

    def test_with_authority_and_client_certificate(
        self, proxies: tuple[str, ...], authority: trustme.CA, file: str, tmp_path: Path
    ) -> None:
        """Both ends prove themselves, over AMQP and HTTP."""
        options = _tls_files(authority, tmp_path)

        applied = delayctl("apply", file, "--yes", *proxies, *options)
        planned = delayctl("plan", file, "--detailed-exitcode", *proxies, *options)

        assert (applied.code, planned.code) == (0, 0)

    @pytest.mark.parametrize("command", [("plan",), ("apply", "--yes", "--no-management")])
    def test_an_unknown_authority_is_refused(
        self, proxies: tuple[str, ...], file: str, command: tuple[str, ...]
    ) -> None:
        """Without the CA the certificate is not believed."""
        ran = delayctl(command[0], file, *command[1:], *proxies)

        assert ran.code == 1
        assert "certificate" in ran.err
        assert "--ca-file" in ran.err

    @pytest.mark.parametrize("command", [("plan",), ("apply", "--yes", "--no-management")])
    def test_a_missing_client_certificate_is_an_error(
        self, proxies: tuple[str, ...], authority: trustme.CA, file: str, tmp_path: Path, command: tuple[str, ...]
    ) -> None:
        """A broker that asks for a certificate and gets none hangs up; the option for it is named."""
        ran = delayctl(command[0], file, *command[1:], *proxies, *_tls_files(authority, tmp_path)[:2])

        assert ran.code == 1
        assert "--cert-file" in ran.err

    def test_a_file_that_is_no_certificate(self, proxies: tuple[str, ...], file: str) -> None:
        """A CA file that can't be used is named."""
        ran = delayctl("plan", file, *proxies, "--ca-file", file)

        assert ran.code == 1
        assert "TLS files can't be used" in ran.err


def _tls_files(authority: trustme.CA, folder: Path) -> tuple[str, ...]:
    """The options that name a CA, a client certificate and its key."""
    client = authority.issue_cert("client@example.com")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    client.cert_chain_pems[0].write_to_path(folder / "client.pem")
    client.private_key_pem.write_to_path(folder / "client.key")
    return (
        *("--ca-file", str(folder / "ca.pem")),
        *("--cert-file", str(folder / "client.pem")),
        *("--key-file", str(folder / "client.key")),
    )


def test_a_password_in_any_script(rabbit: Rabbit, user: str, file: str) -> None:
    """Over HTTP and over AMQP a password is UTF-8."""
    rabbit.api("PUT", f"users/{user}", {"password": "pä€ß", "tags": "policymaker"})

    ran = as_user(rabbit, user, "apply", file, "--yes", password="p%C3%A4%E2%82%AC%C3%9F")

    assert (ran.code, ran.err) == (0, "")


def test_two_urls_that_lead_to_different_brokers(rabbit: Rabbit, file: str) -> None:
    """The record of one broker must not be kept on another."""
    with needed(native_node()) as other:
        Rabbit(other, rabbit.vhost).create()
        address = ("--url", rabbit.broker.url, "--management-url", other.management_url, "--vhost", rabbit.vhost)
        ran = delayctl("apply", file, "--yes", *address)

    assert ran.code == 1
    assert "--url and --management-url lead to different brokers" in ran.err
    assert rabbit.definitions()["queues"] == []


def test_an_apply_whose_reader_goes_away_is_carried_through(rabbit: Rabbit, file: str) -> None:
    """`apply | head -1` must not leave half of it undone."""
    process = delayctl_process("apply", file, "--yes", *rabbit.options, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()

    assert process.wait(60) == 0
    assert rabbit.delayctl("plan", file, "--detailed-exitcode").code == 0
