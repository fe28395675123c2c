"""`delayctl serve` in a process of its own, and what a program gets from it."""

import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import urllib3

from tests.support.commands import delayctl_process

ENDS_WITHIN_S = 30


@dataclass(frozen=True)
class Served:
    """A server that answers."""

    address: str  # As it was printed, token included.
    process: "subprocess.Popen[str]"

    @property
    def base(self) -> str:
        """The address without a path."""
        return f"http://{urlsplit(self.address).netloc}"

    @property
    def token(self) -> str | None:
        """The token of the address."""
        return urlsplit(self.address).fragment.removeprefix("token=") or None

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Mapping[str, str], Any]:
        """What a program is answered; with a body it is a POST that comes from the page itself."""
        sent = {"authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            sent |= {"origin": self.base, "content-type": "application/json"}
        sent = {name: value for name, value in (sent | headers).items() if value}
        with urllib3.PoolManager(retries=False, timeout=60) as pool:
            data = None if body is None else json.dumps(body).encode()
            answer = pool.request("GET" if body is None else "POST", f"{self.base}{path}", body=data, headers=sent)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status, answer.headers, json.loads(answer.data) if is_json else answer.data.decode()

    def state(self) -> Any:
        """All that the page is told."""
        return self.ask("/api/state")[2]

    def stop(self) -> int:
        """End it as Ctrl-C does; its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(ENDS_WITHIN_S)


@contextmanager
def serving(*arguments: str) -> Iterator[Served]:
    """Run the command on a free port until the block ends."""
    process = delayctl_process("serve", *arguments, "--port", "0", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        if " at http" not in line:
            raise AssertionError(line + process.stderr.read())
        yield Served(line.rpartition(" at ")[2].strip(), process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(ENDS_WITHIN_S)
        process.stdout.close()
        process.stderr.close()
