"""A server on this machine that stops, lies, changes and refuses, as tests of downloads ask."""

import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

DATA = np.random.default_rng(0).bytes(3_000_000)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.asked.append(wanted)
        server.paths.append(self.path)
        server.headers.append(dict(self.headers))
        if self.path.startswith("/redirect"):
            self.answer(302, Location=self.path.removeprefix("/redirect"))
            return
        data = server.files.get(self.path.partition("?")[0])
        if data is None or server.broken:
            self.send_error(503 if server.broken else 404)
            return
        status, start, headers = 200, 0, {}
        if wanted and server.ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(data):
                self.answer(416, **{"Content-Range": f"bytes */{len(data)}"})
                return
            status = 206
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self.answer(status, len(data) - start, **headers)
        body = data[start:]
        if server.cuts:
            body = body[: server.cuts.pop(0)]
        for i in range(0, len(body), 50_000):
            self.wfile.write(body[i : i + 50_000])
            time.sleep(server.pause)
        if len(body) < len(data) - start:
            self.close_connection = True

    def answer(self, status, length=0, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": length, **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    server.files = {"/text.txt": DATA}
    server.asked, server.paths, server.cuts, server.headers = [], [], [], []
    server.ranges, server.broken, server.pause = True, False, 0.0
    server.handle_error = lambda *_: None  # clients that go away are what is tested
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
