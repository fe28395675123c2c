"""Where a broker is and how to get in; whatever goes wrong, no password shows."""

import dataclasses
import ssl
import traceback
from pathlib import Path

import pytest
from delayctl.topology.access import (
    DEFAULT_URL,
    Access,
    Credentials,
    Tls,
    access_from,
    credentials_from,
    quoted,
)
from delayctl.topology.errors import DelayctlError

SECRET = "s3cr3t"
OPS = Credentials("ops", SECRET)


class TestUrls:
    """What a URL says, and what it leaves open."""

    def test_the_default_is_a_broker_on_this_machine(self) -> None:
        """With its management API beside it."""
        guest = Credentials("guest", "guest")

        assert access_from(DEFAULT_URL) == Access(
            "127.0.0.1", 5672, None, guest, False, "http://127.0.0.1:15672", guest
        )

    def test_a_full_url_says_everything(self) -> None:
        """Percent-encoded where a character has a meaning."""
        access = access_from("amqps://o%40ps:s%2F3@mq.example.com:1234/%2Fshop")

        user = Credentials("o@ps", "s/3")
        assert access == Access("mq.example.com", 1234, "/shop", user, True, "https://mq.example.com:15671", user)

    @pytest.mark.parametrize(
        ("url", "vhost"),
        [
            ("amqp://host", None),
            ("amqp://host/", None),
            ("amqp://host/shop", "shop"),
            ("amqp://host/%2F", "/"),
            ("amqp://host/a%20b", "a b"),
        ],
    )
    def test_a_virtual_host_is_named_or_not(self, url: str, vhost: str | None) -> None:
        """A bare slash names none, so that the file may."""
        assert access_from(url).vhost == vhost

    @pytest.mark.parametrize(
        ("given", "used"),
        [
            ("http://mq:15672", "http://mq:15672"),
            ("http://mq:15672/", "http://mq:15672"),
            ("http://mq:15672/api", "http://mq:15672"),
            ("http://mq:15672/api/", "http://mq:15672"),
            ("https://proxy/rabbit/api", "https://proxy/rabbit"),
            ("https://proxy/api/rabbit", "https://proxy/api/rabbit"),
        ],
    )
    def test_a_management_url_may_end_with_api(self, given: str, used: str) -> None:
        """As the API's documentation and many other tools write it."""
        assert access_from(DEFAULT_URL, management_url=given).management_url == used

    @pytest.mark.parametrize(
        ("url", "port", "management"),
        [
            ("amqp://host", 5672, "http://host:15672"),
            ("amqps://host", 5671, "https://host:15671"),
            ("amqp://[::1]", 5672, "http://[::1]:15672"),
        ],
    )
    def test_ports_follow_from_the_scheme(self, url: str, port: int, management: str) -> None:
        """Also where the host is an IPv6 address."""
        access = access_from(url)

        assert (access.port, access.management_url) == (port, management)

    def test_the_management_api_may_be_elsewhere(self) -> None:
        """With credentials of its own, which leave the URL, and behind a path."""
        access = access_from(f"amqp://ops:{SECRET}@mq", management_url="https://admin:other@web.example.com/rabbit/")

        assert access.management_url == "https://web.example.com/rabbit"
        assert access.management_credentials == Credentials("admin", "other")
        assert access.credentials == OPS

    def test_the_management_api_takes_the_same_credentials_otherwise(self) -> None:
        """One login for both."""
        assert access_from(f"amqp://ops:{SECRET}@mq", management_url="http://web").management_credentials == OPS

    def test_credentials_from_elsewhere_beat_those_in_urls(self) -> None:
        """A file or the environment is where they belong."""
        access = access_from("amqp://a:b@mq", management_url="http://c:d@mq", credentials=OPS)

        assert (access.credentials, access.management_credentials) == (OPS, OPS)

    def test_the_same_broker_has_other_virtual_hosts(self) -> None:
        """Nothing else changes."""
        access = access_from("amqp://mq/a")

        assert access.at("b") == dataclasses.replace(access, vhost="b")

    @pytest.mark.parametrize(
        ("url", "address"),
        [
            (f"amqp://ops:{SECRET}@mq", "amqp://mq:5672"),
            (f"amqps://ops:{SECRET}@[::1]:9", "amqps://[::1]:9"),
        ],
    )
    def test_the_address_can_be_shown(self, url: str, address: str) -> None:
        """It has neither user nor password."""
        assert access_from(url).address == address


class TestBadUrls:
    """What is wrong is said without repeating what may be a password."""

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "mq.example.com",
            f"ops:{SECRET}@mq",
            f"http://ops:{SECRET}@mq",
            f"amqp:ops:{SECRET}@mq",
            f"amqp://ops:{SECRET}@",
            f"amqp://ops:{SECRET}@[::1",
        ],
    )
    def test_what_is_no_amqp_url_is_refused(self, url: str) -> None:
        """The fix shows how one looks."""
        with pytest.raises(DelayctlError) as caught:
            access_from(url)
        assert str(caught.value) == (
            "Error: --url is not a URL that begins with amqp:// or amqps:// and names a host\n"
            "  fix: write it like amqp://USER:PASSWORD@127.0.0.1:5672/"
        )

    def test_what_is_no_http_url_is_refused(self) -> None:
        """The fix shows where the management API would be by default."""
        with pytest.raises(DelayctlError) as caught:
            access_from("amqp://mq", management_url="mq:15672")
        assert str(caught.value) == (
            "Error: --management-url is not a URL that begins with http:// or https:// and names a host\n"
            "  fix: write it like http://mq:15672"
        )

    @pytest.mark.parametrize("url", [f"amqp://ops:{SECRET}/x@mq", "amqp://mq:99999", "amqp://mq:port"])
    def test_a_port_that_is_none_is_refused(self, url: str) -> None:
        """Mostly it is the first half of a password with a slash in it."""
        with pytest.raises(DelayctlError) as caught:
            access_from(url)
        assert "must be percent-encoded" in str(caught.value)

    @pytest.mark.parametrize("separator", ["/", "?", "#"])
    @pytest.mark.parametrize("option", ["url", "management_url"])
    def test_a_password_is_not_taken_for_port_and_path(self, option: str, separator: str) -> None:
        """Numbers first, then a separator: it looks like a port, and would be shown as one."""
        scheme = "amqp" if option == "url" else "http"
        urls = {"url": "amqp://mq", option: f"{scheme}://ops:1234{separator}{SECRET}@mq"}

        with pytest.raises(DelayctlError) as caught:
            access_from(urls["url"], management_url=urls.get("management_url"))
        assert "must be percent-encoded" in str(caught.value)
        assert "1234" not in str(caught.value)


class TestCredentials:
    """From a file, else from the environment."""

    def test_a_file_holds_two_lines(self, tmp_path: Path) -> None:
        """It beats the environment."""
        file = tmp_path / "ops.yaml"
        file.write_text(f"username: ops\npassword: {SECRET}\n")

        assert credentials_from(str(file), {"DELAYCTL_USERNAME": "a", "DELAYCTL_PASSWORD": "b"}) == OPS

    @pytest.mark.parametrize("password", ["0123", "1e3", "yes", "null", "12_3", "2026-01-01"])
    def test_a_password_is_a_text_whatever_it_looks_like(self, tmp_path: Path, password: str) -> None:
        """YAML would make numbers, dates and truths of them."""
        file = tmp_path / "ops.yaml"
        file.write_text(f"username: ops\npassword: {password}\n")

        assert credentials_from(str(file), {}) == Credentials("ops", password)

    def test_the_environment_holds_two_variables(self) -> None:
        """Where no file is named."""
        assert credentials_from(None, {"DELAYCTL_USERNAME": "ops", "DELAYCTL_PASSWORD": SECRET}) == OPS

    def test_there_may_be_none(self) -> None:
        """Then those in the URL are used."""
        assert credentials_from(None, {}) is None

    def test_an_empty_password_is_one(self) -> None:
        """An empty user is none."""
        assert credentials_from(None, {"DELAYCTL_USERNAME": "ops", "DELAYCTL_PASSWORD": ""}) == Credentials("ops", "")

    @pytest.mark.parametrize(
        "environment",
        [
            {"DELAYCTL_USERNAME": "ops"},
            {"DELAYCTL_PASSWORD": SECRET},
            {"DELAYCTL_USERNAME": "", "DELAYCTL_PASSWORD": SECRET},
        ],
    )
    def test_one_of_two_is_a_mistake(self, environment: dict[str, str]) -> None:
        """It is not silently passed over."""
        with pytest.raises(DelayctlError) as caught:
            credentials_from(None, environment)
        assert str(caught.value) == (
            "Error: only one of DELAYCTL_USERNAME and DELAYCTL_PASSWORD is set\n  fix: set both, or neither"
        )

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (f"username: ops\npassword: '{SECRET}\n", "the credentials file is not YAML"),
            (f"password: {SECRET}\n", "the credentials file has no username or no password"),
            (f"- {SECRET}\n", "the credentials file has no username or no password"),
            (f"username: ops\npassword: [{SECRET}]\n", "the credentials file has no username or no password"),
            (f"username:\npassword: {SECRET}\n", "the credentials file has no username or no password"),
            ("", "the credentials file has no username or no password"),
        ],
    )
    def test_a_file_that_can_not_be_used_is_named(self, tmp_path: Path, content: str, what: str) -> None:
        """And what is in it is not repeated."""
        file = tmp_path / "ops.yaml"
        file.write_text(content)

        with pytest.raises(DelayctlError) as caught:
            credentials_from(str(file), {})
        assert str(caught.value) == (
            f"Error: {what}\n  at {file}\n  fix: write two lines: 'username: NAME' and 'password: SECRET'"
        )
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    def test_a_file_of_other_bytes_is_named(self, tmp_path: Path) -> None:
        """Not every file is a text."""
        file = tmp_path / "ops.yaml"
        file.write_bytes(b"username: ops\npassword: \xff" + SECRET.encode())

        with pytest.raises(DelayctlError) as caught:
            credentials_from(str(file), {})
        assert SECRET not in "".join(traceback.format_exception(caught.value))

    def test_a_file_that_is_missing_is_named(self, tmp_path: Path) -> None:
        """With the system's reason."""
        with pytest.raises(DelayctlError, match="the credentials file can't be read: No such file or directory"):
            credentials_from(str(tmp_path / "missing.yaml"), {})


class TestSecrecy:
    """A password is in one attribute and nowhere else."""

    ACCESS = access_from(f"amqp://ops:{SECRET}@mq", management_url=f"http://admin:{SECRET}@mq")

    @pytest.mark.parametrize("value", [OPS, ACCESS, (ACCESS, OPS), {"access": ACCESS}], ids=["1", "2", "3", "4"])
    def test_it_shows_in_no_text(self, value: object) -> None:
        """Neither in a repr nor in a str, at any depth."""
        assert SECRET not in f"{value!r} {value!s} {value}"

    def test_it_is_not_in_what_is_shown_of_an_access(self) -> None:
        """Both addresses are free of it."""
        assert SECRET not in self.ACCESS.address + self.ACCESS.management_url

    def test_the_place_of_a_key_is_nobodys_business_either(self) -> None:
        """A repr does not tell where to look for it."""
        assert "key.pem" not in repr(Tls("ca.pem", "cert.pem", "key.pem"))

    @pytest.mark.parametrize(
        "url",
        [
            f"{SECRET}",
            f"amqp://{SECRET}:{SECRET}@",
            f"amqp://mq:{SECRET}",
            f"amqp://ops:{SECRET}/{SECRET}@mq",
            f"amqp://ops:12/{SECRET}@mq",
            f"amqp://ops:12?{SECRET}@mq",
            f"//ops:{SECRET}@mq",
        ],
    )
    def test_no_error_about_a_url_repeats_it(self, url: str) -> None:
        """Not even in the chain of causes."""
        with pytest.raises(DelayctlError) as caught:
            access_from(url)
        shown = "".join(traceback.format_exception_only(caught.value))
        assert SECRET not in shown + repr(caught.value) + str(caught.value.__cause__)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


class TestTls:
    """How a server proves itself to us."""

    def test_certificates_are_verified(self) -> None:
        """Name and chain, by default."""
        context = Tls().context()

        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)

    def test_verification_can_be_switched_off(self) -> None:
        """By name only: --insecure."""
        context = Tls(verify=False).context()

        assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)

    def test_a_file_that_can_not_be_used_is_named(self, tmp_path: Path) -> None:
        """With the options that may be at fault."""
        file = tmp_path / "ca.pem"

        with pytest.raises(DelayctlError) as caught:
            Tls(ca_file=str(file)).context()
        assert str(caught.value) == (
            f"Error: TLS files can't be used ({file}): No such file or directory\n"
            "  fix: check that --ca-file, --cert-file and --key-file name readable PEM files that belong together"
        )

    def test_a_file_that_is_no_certificate_is_named(self, tmp_path: Path) -> None:
        """OpenSSL's words are not much, but something."""
        file = tmp_path / "cert.pem"
        file.write_text("not a certificate")

        with pytest.raises(DelayctlError, match=r"TLS files can't be used \(.*cert\.pem\)"):
            Tls(cert_file=str(file)).context()


@pytest.mark.parametrize(("name", "part"), [("/", "%2F"), ("a b", "a%20b"), ("ü", "%C3%BC"), ("a.b-c", "a.b-c")])
def test_a_name_becomes_a_part_of_a_path(name: str, part: str) -> None:
    """A slash is no exception."""
    assert quoted(name) == part


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_is_a_step_in_a_path_is_refused(name: str) -> None:
    """The broker would answer for another place, and say so to nobody."""
    with pytest.raises(DelayctlError) as raised:
        quoted(name)

    assert str(raised.value) == (
        f"Error: the broker's management API can't be asked about '{name}': it takes this name for a step in a path\n"
        "  fix: use another name, and delete what has this one by a client of AMQP"
    )
