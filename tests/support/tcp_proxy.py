"""A network in a test's hands: passes bytes on to an address until it is told to cut or to stall."""

import socket
import struct
import threading
from types import TracebackType

_RESET = struct.pack("ii", 1, 0)  # Close with a reset, as a network that breaks does, not with a goodbye.


class TcpProxy:
    """Listens on loopback; `cut` breaks what is open, `stall` keeps it open and silent, `is_down` lets nobody in."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.is_down = False
        self.accepted = 0
        self._open: list[_Pair] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "TcpProxy":
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        self.cut()

    def cut(self) -> None:
        """Break every connection."""
        pairs, self._open = self._open, []
        for pair in pairs:
            pair.cut()

    def stall(self) -> None:
        """Pass nothing on over the connections that are open now; new ones are not affected."""
        for pair in self._open:
            pair.flows.clear()

    def resume(self) -> None:
        """Pass on again."""
        for pair in self._open:
            pair.flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # The listener was closed: the test is over.
            self.accepted += 1
            if self.is_down:
                client.close()
                continue
            try:
                self._open.append(_Pair(client, socket.create_connection(self._target)))
            except OSError:
                client.close()  # The broker is down, and so are we.


class _Pair:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self._ends = (client, server)
        self.flows = threading.Event()
        self.flows.set()
        self._pumps = [
            threading.Thread(target=self._pump, args=ends, daemon=True) for ends in ((client, server), (server, client))
        ]
        for pump in self._pumps:
            pump.start()

    def cut(self) -> None:
        for end in self._ends:
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self.flows.set()
        for pump in self._pumps:
            pump.join(10)
        for end in self._ends:
            end.close()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                self.flows.wait()
                target.sendall(data)
        except OSError:
            pass
        finally:
            for end in self._ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
