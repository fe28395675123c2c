"""Where a broker is and how to get in; the password never shows."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

import yaml
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.names import DOT_SEGMENTS

DEFAULT_URL = "amqp://guest:guest@127.0.0.1:5672/"
DEFAULT_TIMEOUT_S = 10.0
_AMQP_PORTS = {"amqp": 5672, "amqps": 5671}
_MANAGEMENT_PORTS = {"amqp": 15672, "amqps": 15671}
_ENCODE = "a password or virtual host with '/', '#', '?' or '@' must be percent-encoded: %2F, %23, %3F, %40"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password that no repr shows."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """How a server proves itself to us, and we to it."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = field(default=None, repr=False)
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Build the TLS context, or raise DelayctlError where a file can't be used."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.cert_file:
                context.load_cert_chain(self.cert_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(file for file in (self.ca_file, self.cert_file, self.key_file) if file)
            raise DelayctlError(
                f"TLS files can't be used ({files}): {error.strerror or error}",
                fix="check that --ca-file, --cert-file and --key-file name readable PEM files that belong together",
            ) from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class Access:
    """All that is needed to reach one virtual host over AMQP and HTTP."""

    host: str
    port: int
    vhost: str | None  # As the URL names it; None where it names none.
    credentials: Credentials
    is_tls: bool
    management_url: str  # Without credentials.
    management_credentials: Credentials
    tls: Tls = Tls()
    timeout_s: float = DEFAULT_TIMEOUT_S

    @property
    def address(self) -> str:
        """The AMQP address as it may be shown."""
        return f"{'amqps' if self.is_tls else 'amqp'}://{_bracketed(self.host)}:{self.port}"

    def at(self, vhost: str) -> "Access":
        """The same broker, another virtual host."""
        return replace(self, vhost=vhost)


def access_from(
    url: str,
    *,
    management_url: str | None = None,
    credentials: Credentials | None = None,
    tls: Tls | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Access:
    """Work out the access from URLs as users write them, or raise DelayctlError."""
    parts = _split(url, "--url", tuple(_AMQP_PORTS), DEFAULT_URL)
    in_url = _credentials_of(parts) or Credentials("guest", "guest")
    host, port = parts.hostname or "127.0.0.1", _port(parts, "--url") or _AMQP_PORTS[parts.scheme]
    scheme = "https" if parts.scheme == "amqps" else "http"
    example = f"{scheme}://{_bracketed(host)}:{_MANAGEMENT_PORTS[parts.scheme]}"
    management = _split(management_url or example, "--management-url", ("http", "https"), example)
    _port(management, "--management-url")
    return Access(
        host=host,
        port=port,
        vhost=unquote(parts.path[1:]) or None,
        credentials=credentials or in_url,
        is_tls=parts.scheme == "amqps",
        management_url=f"{management.scheme}://{management.netloc.rpartition('@')[2]}{_before_api(management.path)}",
        management_credentials=credentials or _credentials_of(management) or in_url,
        tls=tls or Tls(),
        timeout_s=timeout_s,
    )


def credentials_from(file: str | None, environment: Mapping[str, str]) -> Credentials | None:
    """Credentials from a file (`username: …`, `password: …`), else from the environment, else None."""
    if file is not None:
        return _credentials_in(file)
    username, password = environment.get("DELAYCTL_USERNAME"), environment.get("DELAYCTL_PASSWORD")
    if username is None and password is None:
        return None
    if not username or password is None:
        raise DelayctlError("only one of DELAYCTL_USERNAME and DELAYCTL_PASSWORD is set", fix="set both, or neither")
    return Credentials(username, password)


def _credentials_in(file: str) -> Credentials:
    fix = "write two lines: 'username: NAME' and 'password: SECRET'"
    try:
        # The base loader makes nothing but texts: to the others the password 0123 is the number 83.
        content = yaml.load(Path(file).read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # noqa: S506
    except OSError as error:
        raise DelayctlError(f"the credentials file can't be read: {error.strerror}", where=file, fix=fix) from error
    except (yaml.YAMLError, UnicodeDecodeError):
        # The cause would repeat the text around the fault, and with it the password.
        raise DelayctlError("the credentials file is not YAML", where=file, fix=fix) from None
    username, password = (content.get(key) if isinstance(content, dict) else None for key in ("username", "password"))
    if not isinstance(username, str) or not isinstance(password, str) or not username:
        raise DelayctlError("the credentials file has no username or no password", where=file, fix=fix)
    return Credentials(username, password)


def _split(url: str, option: str, schemes: tuple[str, ...], example: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme not in schemes or not parts.hostname:
        # The value may hold a password in a place that is not recognised as one, so it is not repeated.
        wanted = " or ".join(f"{scheme}://" for scheme in schemes)
        shown = example.replace("guest:guest@", "USER:PASSWORD@")
        raise BadOption(
            f"{option} is not a URL that begins with {wanted} and names a host", fix=f"write it like {shown}"
        )
    if "@" in parts.path + parts.query + parts.fragment:
        # What looks like a host, a port and a path is a user and a password then, and must not be shown as such.
        raise BadOption(f"{option} has an '@' behind the host", fix=_ENCODE)
    return parts


def _port(parts: SplitResult, option: str) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise BadOption(
            f"{option} has a port that is no number between 0 and 65535",
            fix=_ENCODE,
        ) from None


def _credentials_of(parts: SplitResult) -> Credentials | None:
    if parts.username is None:
        return None
    return Credentials(unquote(parts.username), unquote(parts.password or ""))


def _before_api(path: str) -> str:
    """The path of a management URL, which people also give with the `/api` that is put behind it."""
    return path.rstrip("/").removesuffix("/api").rstrip("/")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def quoted(name: str) -> str:
    """A name as a part of a URL's path, or DelayctlError where it can't be one."""
    if name in DOT_SEGMENTS:
        what = f"the broker's management API can't be asked about '{name}': it takes this name for a step in a path"
        raise DelayctlError(what, fix="use another name, and delete what has this one by a client of AMQP")
    return quote(name, safe="")
