"""The command metrics without a broker: its options, its files, its server, and what many who ask cost."""

import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3
from delayctl.cli.metrics_server import Shared, address_url, serving
from delayctl.cli.output import replace_file
from delayctl.topology.errors import DelayctlError

from tests.support.commands import delayctl
from tests.support.exposed import Exposed

NOWHERE = ("--url", "amqp://guest:guest@127.0.0.1:9/", "--management-url", "http://127.0.0.1:9")
POOL = urllib3.PoolManager(retries=False, timeout=30)


@pytest.fixture
def topology(tmp_path: Path) -> str:
    """A small file."""
    file = tmp_path / "shop.yaml"
    file.write_text("version: 1\nvhost: shop\ndelay: {levels: [1s]}\n")
    return str(file)


@contextmanager
def served(make: Callable[[], str]) -> Iterator[str]:
    """A server on a free port, and where it is."""
    with serving(("127.0.0.1", 0), make) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield address_url(server)
        finally:
            server.shutdown()
            thread.join()


class TestCommand:
    """What can be said without a broker."""

    def test_a_broker_that_is_away(self, topology: str) -> None:
        """Is told as figures, and as an error; the password as neither."""
        ran = delayctl("metrics", topology, *NOWHERE)

        found = Exposed(ran.out)
        assert ran.code == 1
        assert found.one("delayctl_up", topology="shop.yaml", vhost="shop") == 0
        assert found.one("delayctl_error_info", kind="ManagementUnavailable") == 1
        assert ran.err.startswith("Error: no management API listens at http://127.0.0.1:9/api\n")
        assert "guest" not in ran.out + ran.err

    def test_a_broker_that_does_not_answer(self, topology: str) -> None:
        """It costs --timeout, not the minute that other commands wait: who scrapes has gone by then."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            management = f"http://127.0.0.1:{silent.getsockname()[1]}"
            ran = delayctl("metrics", topology, *NOWHERE[:2], "--management-url", management, "--timeout", "0.2")

        assert (ran.code, Exposed(ran.out).one("delayctl_up")) == (1, 0)
        assert ran.err.startswith(f"Error: the management API at {management}/api does not answer in time\n")

    def test_a_name_of_its_own(self, topology: str) -> None:
        """For those who have many a topology.yaml."""
        ran = delayctl("metrics", topology, "--name", "the shop", *NOWHERE)

        assert Exposed(ran.out).one("delayctl_up", topology="the shop") == 0

    def test_a_textfile(self, topology: str, tmp_path: Path) -> None:
        """Whole, readable for the collector, and with nothing beside it."""
        folder = tmp_path / "collector"
        folder.mkdir()

        ran = delayctl("metrics", topology, "--textfile", str(folder / "delayctl.prom"), *NOWHERE)

        assert (ran.code, ran.out) == (1, "")
        assert [file.name for file in folder.iterdir()] == ["delayctl.prom"]
        assert Exposed((folder / "delayctl.prom").read_text()).one("delayctl_up") == 0

    @pytest.mark.parametrize(
        "address", ["http", ":9725", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "a:-1", ""]
    )
    def test_an_address_that_is_none(self, topology: str, address: str) -> None:
        """Said with how to write one."""
        ran = delayctl("metrics", topology, "--listen", address)

        assert ran.code == 64
        assert "is not an address: write 9725, 127.0.0.1:9725 or [::1]:9725" in ran.err

    def test_both_at_once(self, topology: str) -> None:
        """One reading goes one way."""
        ran = delayctl("metrics", topology, "--listen", "127.0.0.1:0", "--textfile", "x.prom")

        assert (ran.code, "give --textfile or --listen, not both" in ran.err) == (64, True)

    def test_an_address_of_somebody_else(self, topology: str) -> None:
        """A port that is taken, a host that is not this machine's, and one that is nowhere."""
        with serving(("127.0.0.1", 0), str) as server:
            port = address_url(server).rpartition(":")[2].removesuffix("/metrics")
            taken = delayctl("metrics", topology, "--listen", f"127.0.0.1:{port}", *NOWHERE)
        foreign = delayctl("metrics", topology, "--listen", "192.0.2.1:9725", *NOWHERE)
        nowhere = delayctl("metrics", topology, "--listen", "no such host:9725", *NOWHERE)

        assert (taken.code, foreign.code, nowhere.code) == (1, 1, 1)
        assert taken.err.startswith(f"Error: can't listen at 127.0.0.1:{port}: Address already in use\n  fix: ")
        assert foreign.err.startswith("Error: can't listen at 192.0.2.1:9725: ")
        assert nowhere.err.startswith("Error: can't listen at no such host:9725: ")

    def test_a_file_that_is_wrong(self, tmp_path: Path) -> None:
        """Is an error, and no figure."""
        file = tmp_path / "topology.yaml"
        file.write_text("version: 1\ndelay: {levels: [5x]}\n")

        ran = delayctl("metrics", str(file), *NOWHERE)

        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith("Error: level '5x' is not a duration")


class TestTextfile:
    """A file that others read at any moment."""

    def test_it_replaces(self, tmp_path: Path) -> None:
        """In one step: whoever has the old one open reads it to its end."""
        file = tmp_path / "a.prom"
        replace_file(str(file), "old")
        with file.open() as reader:
            replace_file(str(file), "new")

            assert (reader.read(), file.read_text()) == ("old", "new")

    def test_others_may_read_it(self, tmp_path: Path) -> None:
        """The collector is another user."""
        before = os.umask(0o022)
        try:
            replace_file(str(tmp_path / "a.prom"), "x")
        finally:
            os.umask(before)

        assert stat.S_IMODE((tmp_path / "a.prom").stat().st_mode) == 0o644

    @pytest.mark.parametrize("place", ["missing/a.prom", "file/a.prom", "folder"])
    def test_where_nothing_can_be_written(self, tmp_path: Path, place: str) -> None:
        """Said with the place, and nothing is left beside it."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_text("")

        with pytest.raises(DelayctlError, match="the metrics can't be written") as raised:
            replace_file(str(tmp_path / place), "x", what="the metrics")

        assert raised.value.where == str(tmp_path / place)
        assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder"]


class TestServer:
    """What scrapers get."""

    def test_metrics(self) -> None:
        """As Prometheus expects it, also where it asks with a query."""
        with served(lambda: "delayctl_up 1\n") as url:
            plain, asked = POOL.request("GET", url), POOL.request("GET", f"{url}?name[]=x")
            head = POOL.request("HEAD", url)

        assert (plain.status, plain.data, plain.headers["content-type"]) == (
            200,
            b"delayctl_up 1\n",
            "text/plain; version=0.0.4; charset=utf-8",
        )
        assert asked.data == plain.data
        assert (head.status, head.data, head.headers["content-length"]) == (200, b"", "14")

    def test_other_places(self) -> None:
        """There is nothing else, and nothing can be written."""
        with served(lambda: "x 1\n") as url:
            root, other = (POOL.request("GET", url.replace("/metrics", path)) for path in ("/", "/metrics/../etc"))
            posted = POOL.request("POST", url, body=b"x")

        assert (root.status, other.status, posted.status) == (404, 404, 501)
        assert root.data == b"There is nothing here but /metrics.\n"

    def test_what_nobody_foresaw(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Ends that scrape and not the server; no traceback is shown, and no secret of the error."""
        answers = iter(["", "x 1\n"])

        def make() -> str:
            text = next(answers)
            if not text:
                raise RuntimeError("the password is swordfish")
            return text

        with served(make) as url:
            first, second = POOL.request("GET", url), POOL.request("GET", url)

        assert (first.status, first.data) == (500, b"delayctl met something it did not foresee.\n")
        assert second.status == 200
        said = capsys.readouterr().err
        assert said == "Error: delayctl met something it did not foresee: RuntimeError\n"

    def test_loopback_of_the_other_family(self) -> None:
        """Its address is written in brackets, whether the machine knows it or not."""
        try:
            with serving(("::1", 0), str) as server:
                said = address_url(server)
        except DelayctlError as error:  # A machine may have no IPv6 at all.
            said = error.what

        assert "[::1]:" in said


class TestShared:
    """Many scrapers cost one reading."""

    def test_within_its_age_it_is_not_made_again(self) -> None:
        """And after that it is."""
        now, made = [100.0], []

        def make() -> str:
            made.append(now[0])
            return str(len(made))

        shared = Shared(make, max_age_s=5, clock=lambda: now[0])
        seen = []
        for moment in (100.0, 104.9, 105.0, 109.9, 200.0):
            now[0] = moment
            seen.append(shared.text())

        assert seen == ["1", "1", "2", "2", "3"]
        assert made == [100.0, 105.0, 200.0]

    def test_who_asks_meanwhile_waits_for_it(self) -> None:
        """Eight at once, one reading."""
        begun, go_on, made = threading.Event(), threading.Event(), []

        def make() -> str:
            made.append(1)
            begun.set()
            assert go_on.wait(30)
            return "x"

        shared = Shared(make, max_age_s=60, clock=lambda: 0.0)
        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(shared.text) for _ in range(8)]
            assert begun.wait(30)
            go_on.set()

            assert [answer.result(timeout=30) for answer in answers] == ["x"] * 8
        assert len(made) == 1

    def test_a_failure_is_not_kept(self) -> None:
        """The next one tries again."""
        answers = iter([0, 7])
        shared = Shared(lambda: str(7 // next(answers)), max_age_s=60, clock=lambda: 0.0)

        with pytest.raises(ZeroDivisionError):
            shared.text()

        assert shared.text() == "1"
