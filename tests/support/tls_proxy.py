"""TLS in front of a plain port, with a client certificate asked for."""

import socket
import ssl
import threading
from types import TracebackType

import trustme


class TlsProxy:
    """Listens with TLS on loopback and passes bytes on to an address."""

    def __init__(self, authority: trustme.CA, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.verify_mode = ssl.CERT_REQUIRED
        authority.issue_cert("localhost").configure_cert(self._context)
        authority.configure_trust(self._context)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "TlsProxy":
        self._threads[0].start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # The listener was closed: the test is over.
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            try:
                with self._context.wrap_socket(client, server_side=True) as secure:
                    back = threading.Thread(target=_pump, args=(server, secure))
                    back.start()
                    _pump(secure, server)
                    back.join()
            except (ssl.SSLError, OSError):
                return  # A client that is not believed is hung up on, which is what the test looks at.


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on bytes until either end is closed."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
