"""A page of somebody else's, on the same machine: it has a form that is sent to wherever it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Sent as plain text, such a form is JSON: the equals sign becomes the value of the last name.
FORM = """<!doctype html><title>theirs</title><form method="post" enctype="text/plain" action="{address}">
<input name="{begin}" value="{end}"><button>Win a prize</button></form>"""


@contextmanager
def foreign_page(address: str, json: str) -> Iterator[str]:
    """The address of a page whose button posts this JSON, an object, to an address."""
    page = FORM.format(address=address, begin=escape(f'{json[:-1]}, "prize": "'), end=escape('"}')).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join(10)
