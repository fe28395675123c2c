"""Keeps processes alive exactly as long as the one that asked for them: run as a program, standard library only.

Its standard input is the lifeline: when that ends, for whatever reason, kill -9 of the owner included, the
processes are stopped and their folder is removed.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

# The kernel's numbers for "set an interface's flags" (to none: down) and "delete a bridge".
SET_FLAGS, DELETE_BRIDGE = 0x8914, 0x89A1
SPEC, EXITED = "keeper.json", "exited"
# An end that we bring about is no news, and a marker written while the folder is being removed would keep it.
stopping = threading.Event()


def main(folder: Path) -> None:
    """Start the commands of the spec in `folder`, wait for the end of standard input, clean up."""
    spec: dict[str, Any] = json.loads((folder / SPEC).read_text())
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    # The owner's terminal is not ours: its owner decides what an interrupt means and then lets go of the lifeline.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: list[subprocess.Popen[bytes]] = []
    try:
        try:
            for command in spec["commands"]:
                running.append(_start(command, folder))
        except OSError as error:
            (folder / EXITED).write_text(f"{error.filename} cannot be started: {error.strerror}")
        sys.stdin.buffer.read()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        stopping.set()
        _stop(running, spec["grace"])
        for path in spec["remove"]:
            _remove_bridges(Path(path))
            _remove(path)


def _start(command: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    with open(command["output"], "ab") as output:
        process = subprocess.Popen(
            command["argv"],
            env=command["env"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # The owner reads the marker to fail at once instead of at its deadline; the logs stay until it lets go.
    threading.Thread(target=_mark_exit, args=(process, command["argv"][0], folder), daemon=True).start()
    return process


def _mark_exit(process: subprocess.Popen[bytes], name: str, folder: Path) -> None:
    code = process.wait()
    if not stopping.is_set():
        (folder / EXITED).write_text(f"{name} ended with exit code {code}")


def _stop(running: list[subprocess.Popen[bytes]], grace: float) -> None:
    for process in reversed(running):
        if process.poll() is None:
            process.terminate()
    for process in reversed(running):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
        # Each was started as the leader of its own group: this reaches what it left behind and nothing else.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _await_group(process.pid)


def _await_group(group: int) -> None:
    """Wait for the last process of a killed group, which may hold files below the folder for a moment longer."""
    end = time.monotonic() + 5
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.killpg(group, 0)
            time.sleep(0.02)


def _remove_bridges(data: Path) -> None:
    """Delete the network bridges of a container engine with this data folder, whose owner could not tell it to."""
    networks = data / "network/files/local-kv.db"
    known = networks.read_bytes() if networks.is_file() else b""
    for bridge in Path("/sys/class/net").glob("br-*"):
        # Engines name a bridge after the network's id: only those in this engine's own list are its own.
        if bridge.name.removeprefix("br-").encode() in known:
            name = bridge.name.encode().ljust(16, b"\0")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control, contextlib.suppress(OSError):
                fcntl.ioctl(control, SET_FLAGS, name.ljust(40, b"\0"))
                fcntl.ioctl(control, DELETE_BRIDGE, name)


def _remove(path: str) -> None:
    """Remove a folder, after unmounting what a container engine may have left mounted below it."""
    for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
        target = line.split()[1]
        if target == path or target.startswith(f"{path}/"):
            subprocess.run(["umount", "--lazy", target], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(path, ignore_errors=True)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
