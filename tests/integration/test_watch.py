"""The live view in a real terminal on a real broker: figures move, keys work, brokers come back, all is given back."""

import fcntl
import os
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed.wait import until
from tests.conftest import TopologyFile
from tests.support.commands import delayctl, delayctl_process
from tests.support.rabbit import Rabbit
from tests.support.tcp_proxy import TcpProxy
from tests.support.terminal import Terminal

FILE = """\
version: 1
delay: {levels: [1h, 2h]}
routes:
  - {key: reminder, delay: 1h, to: reminders.queue}
"""
LEAVE = ("\x1b[?1049l", "\x1b[?25h")  # Back to the screen that was there before, with a cursor.


def applied(rabbit: Rabbit, topology: TopologyFile) -> str:
    """The file, applied."""
    path = topology.write(FILE)
    assert rabbit.delayctl("apply", path, "--yes").code == 0
    return path


def test_figures_move_and_keys_work(rabbit: Rabbit, topology: TopologyFile) -> None:
    """From nothing to three messages, in a window that is made narrow; p holds it, q ends it and gives all back."""
    file = applied(rabbit, topology)

    with Terminal("watch", file, "--every", "500ms", *rabbit.options) as terminal, rabbit.channel() as channel:
        terminal.until_shown(" healthy", "1h ", "drift    none", "q quit  p pause")
        for number in range(3):
            channel.basic_publish("delay.1h.exchange", "reminder", str(number).encode())
        shown = terminal.until_shown("1h ", "  3  ")
        assert [line.split()[:1] for line in shown if line.startswith(("1h", "2h"))] == [["1h"], ["2h"]]
        terminal.resize(40, 20)
        narrow = terminal.until_shown("level  waiting  full")
        assert max(map(len, narrow)) <= 40
        terminal.press("p")
        terminal.until_shown(" paused", "p go on")
        terminal.press("q")

        assert terminal.code() == 0
        assert terminal.settings == terminal.before
        assert all(each in terminal.output for each in LEAVE)


def test_a_broker_goes_away_and_comes_back(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Its last figures stay on the screen meanwhile; a SIGTERM gives the terminal back, too."""
    file = applied(rabbit, topology)
    rabbit.publish("delay.1h.exchange", "reminder", "a", "b")
    with TcpProxy(urlsplit(rabbit.broker.management_url).netloc) as proxy:
        options = [*rabbit.options[:2], "--management-url", f"http://127.0.0.1:{proxy.port}", *rabbit.options[4:]]
        with Terminal("watch", file, "--every", "500ms", *options, NO_COLOR="1") as terminal:
            terminal.until_shown("1h ", "  2  ")
            proxy.is_down = True
            proxy.cut()
            terminal.until_shown(" broker away", "No answer since", "1h ", "  2  ")
            rabbit.publish("delay.1h.exchange", "reminder", "c")
            proxy.is_down = False
            terminal.until_shown(" healthy", "1h ", "  3  ")
            assert "\x1b[3" not in terminal.output, "colours, although NO_COLOR is set"
            os.kill(terminal.pid, signal.SIGTERM)

            assert terminal.code() == 0
            assert terminal.settings == terminal.before
            assert all(each in terminal.output for each in LEAVE)


def test_drift_a_file_that_changes_and_a_switch(rabbit: Rabbit, topology: TopologyFile) -> None:
    """What somebody does on the broker, what somebody writes into the file, and how far its switch is; Ctrl-C ends it."""
    file = applied(rabbit, topology)
    rabbit.publish("delay.1h.exchange", "reminder", "it waits, so that the switch takes its time")

    # Wide, so that no sentence is folded, however long the name of the folder is.
    with Terminal("watch", file, "--every", "500ms", *rabbit.options, columns=250) as terminal:
        terminal.until_shown("drift    none")
        with rabbit.channel() as channel:
            channel.queue_unbind("reminders.queue", "delay.exchange", "reminder")
        terminal.until_shown("not healthy", "+ binding delay.exchange → [reminder] reminders.queue")
        topology.write(FILE.replace("[1h, 2h]", "[1h, 2x]"))
        terminal.until_shown("can't be read any more")
        topology.write(FILE.replace("[1h, 2h]", "[1h, 2h, 3h]"))
        terminal.until_shown("3h ", "missing")
        topology.write(FILE.replace("[1h, 2h]", "{1h: {max_length: 5}, 2h: {}}"))
        terminal.until_shown("switch   due: level 1h")
        assert rabbit.delayctl("apply", file, "--yes").code == 3
        terminal.until_shown("switch   ", "  0%", "level 1h: step 1 of 2, delay.1h.queue empties: 1 message")
        terminal.press("\x03")

        assert terminal.code() == 0
    once = rabbit.delayctl("watch", file, "--once").out
    assert "level 1h: step 1 of 2, delay.1h.queue empties: 1 message" in once


def test_canaries_tell_how_late_messages_come(rabbit: Rabbit, topology: TopologyFile) -> None:
    """Through a level that is short enough, as often as was asked for; the queue that catches them is no target."""
    file = topology.write(FILE.replace("[1h, 2h]", "[1s, 1h]"))
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    options = ("--every", "1s", "--verify-every", "1h", "--verify-up-to", "1s")

    with Terminal("watch", file, *options, *rabbit.options) as terminal:
        shown = terminal.until_shown("verify   ", "proved", " by ")
        line = next(line for line in shown if line.startswith("1s "))
        terminal.press("q")

        assert "ms" in line, "how late the canaries of this level were"
        assert not any("delay.verify.queue" in each for each in shown)
        assert terminal.code() == 0


def test_plain_frames_where_there_is_no_terminal(rabbit: Rabbit, topology: TopologyFile) -> None:
    """One after the other, without a single escape code; Ctrl-C is how they end."""
    file = applied(rabbit, topology)
    output = topology.path.with_suffix(".log")
    with output.open("wb") as log:
        process = delayctl_process("watch", file, "--every", "500ms", *rabbit.options, stdout=log, stderr=log)
        try:
            until(lambda: output.read_text(encoding="utf-8").count("every 500ms") >= 3, 60, what="three frames")
            process.send_signal(signal.SIGINT)

            assert process.wait(60) == 0
        finally:
            process.kill()
    text = output.read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "\n\nhealthy " in text
    assert "Traceback" not in text


def test_one_frame(rabbit: Rabbit, topology: TopologyFile) -> None:
    """And what is wrong from the beginning is an error, as ever."""
    file = applied(rabbit, topology)

    once = rabbit.delayctl("watch", file, "--once")
    nobody = delayctl("watch", file, "--url", rabbit.url, "--management-url", "http://127.0.0.1:1")

    assert (once.code, once.err) == (0, "")
    assert once.out.startswith("healthy ")
    assert nobody.code == 1
    assert nobody.err.startswith("Error: no management API listens at http://127.0.0.1:1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_also_where_nobody_reads(rabbit: Rabbit, topology: TopologyFile, number: signal.Signals) -> None:
    """It waits in the middle of a frame for a pipe that is full, and ends with 0 all the same."""
    file = applied(rabbit, topology)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4000)
    try:
        process = delayctl_process("watch", file, *rabbit.options, stdout=writer, stderr=subprocess.PIPE)
        until(lambda: is_writing(process.pid), 60, what="a frame that nobody takes")
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    finally:
        os.close(reader)
        os.close(writer)

    assert (process.returncode, err) == (0, "")


def is_writing(pid: int) -> bool:
    """Whether the main thread of a process is in a system call that is about stdout."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[1:2] == ["0x1"]
