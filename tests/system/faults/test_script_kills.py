"""Ten kills each of the scripts' own work: what is started again ends with the same bytes."""

import hashlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from manybody.files import checkpoints

KILLS = 10
PARTS = ("training", "sampling", "tokenising", "download")
DATA = np.random.default_rng(0).bytes(4_000_000)


class Slow(BaseHTTPRequestHandler):
    """Sends DATA in half a second or so, from where it is asked to."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        wanted = self.headers.get("Range")
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0
        self.server.asked[self.path] = start
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(DATA) - 1}/{len(DATA)}")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(len(DATA) - start))
        self.end_headers()
        for i in range(start, len(DATA), 100_000):
            self.wfile.write(DATA[i : i + 100_000])
            time.sleep(0.01)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads, server.block_on_close, server.asked = True, False, {}
    server.handle_error = lambda *_: None  # clients that are killed are what is tested
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def contents(folder: Path) -> dict[str, str]:
    """sha256 of all files by name, but for the times; hidden ones and saved states included."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.jsonl"
    }


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_ten_kills_change_no_byte(part, tmp_path, server):
    draw = np.random.default_rng(PARTS.index(part))
    asked = {
        "part": part,
        "folder": str(tmp_path),
        "fractions": draw.uniform(0.02, 0.95, KILLS).tolist(),
        "url": f"http://127.0.0.1:{server.server_port}/text.txt",
    }
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("script_jobs.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    codes = json.loads(done.stdout.splitlines()[-1])
    assert [pair for *pair, _ in codes] == [[-signal.SIGKILL, 0]] * KILLS, done.stderr[-4000:]
    whole = contents(tmp_path / "whole")
    assert whole
    for number in range(KILLS):
        assert contents(tmp_path / str(number)) == whole
    if part == "training":
        for number in range(KILLS):
            run = tmp_path / str(number) / "run"
            lines = (run / "timing.jsonl").read_text().splitlines()
            kept = checkpoints.checkpoint_steps(run / "manifest.json")
            # A line a checkpoint: at most the one that was being reached is reached twice.
            assert len(lines) <= len(kept) + 1
    if part == "download":
        # The last request for each file asks for what was not on disk, and no more.
        last = {number: server.asked[f"/text.txt?{number}"] for number in range(KILLS)}
        assert last == {number: kept for number, (*_, kept) in enumerate(codes)}
        assert any(last.values())
