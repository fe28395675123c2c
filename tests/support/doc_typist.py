"""Types what pages say on a real broker: in this process where that serves, else by a shell or in a process of its own."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.commands import Ran, delayctl, delayctl_process
from tests.support.doc_lines import Line, Way, way
from tests.support.doc_runs import run_commands
from tests.support.rabbit import Rabbit

# Waits that are longer than a test may be, questions to whoever sits there, and ports that others may have.
_SHORTER = (
    (r"--up-to \S+", "--up-to 1s"),
    (r"(delayctl verify \S+)(?!.*--up-to)", r"\1 --up-to 1s"),
    (r"--watch-for \S+", "--watch-for 1s"),
    (r"--wait 4s", "--wait 200ms"),
    (r"(delayctl consume \S+) --output json", r"\1 --wait 200ms --output json"),
    (r"(delayctl watch \S+)", r"\1 --once"),
    (r"delayctl apply (?!.*--yes)", "delayctl apply --yes "),
    (r"--listen \S+", "--listen 0"),
    (r"delayctl serve", "delayctl serve --port 0"),
    (r"/etc/delayctl/|/var/lib/prometheus/node-exporter/", ""),
)
_ENDS_WITHIN_S = 30


class Typist:
    """Types lines in a folder, and takes what is answered."""

    def __init__(self, rabbit: Rabbit, folder: Path) -> None:
        self.rabbit, self.folder = rabbit, folder

    def type(self, line: Line) -> Ran:
        """Run a line; of several commands the last one's answer."""
        text = line.text.replace("--vhost shop", f"--vhost {self.rabbit.vhost}")
        for pattern, instead in _SHORTER:
            text = re.sub(pattern, instead, text)
        if text.startswith("curl "):
            return self._import_definitions()
        return self._shell(text) if way(line) is Way.SHELL else run_commands(Line(line.page, line.number, text), _run)

    def _shell(self, text: str) -> Ran:
        """By bash, which finds delayctl; a script gets the file as its argument."""
        if "jq " in text and shutil.which("jq") is None:
            text = text.partition("| jq")[0]
        functions = f'delayctl() {{ "{sys.executable}" -m delayctl "$@"; }}\n'
        command = ["bash", "-c", functions + text, "script", "topology.yaml"]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=120)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def _import_definitions(self) -> Ran:
        """What curl does, with a login that nobody has to type."""
        self.rabbit.api("POST", "definitions/{vhost}", json.loads((self.folder / "definitions.json").read_text()))
        return Ran(0, "", "")


def _run(*words: str) -> Ran:
    return _until_it_serves(words) if words[0] == "serve" or "--listen" in words else delayctl(*words)


def _until_it_serves(words: tuple[str, ...]) -> Ran:
    """Start a command that never ends, and stop it as Ctrl-C does when it says where it serves."""
    with delayctl_process(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            said = "".join(_until(process.stdout, "Serving "))
            process.send_signal(signal.SIGINT)
            said += process.communicate(timeout=_ENDS_WITHIN_S)[0]
        finally:
            process.kill()
    return Ran(process.returncode, said, "")


def _until(lines: Iterable[str], start: str) -> Iterator[str]:
    """Lines up to the first that begins so."""
    for line in lines:
        yield line
        if line.startswith(start):
            return
