#!/usr/bin/env python3
"""Many clients at once against `winnow serve` with a small random model, on one machine.

    tools/serving_limits.py WINNOW [--streams 1000] [--requests 10000] [--disconnects 500]

Four parts, each with its figures; exit code 1 when one of them does not hold:
  streams      all of them at once, beside readers that take a byte a second: every stream ends
               whole, and no stream waits for a slow reader
  requests     a mix of good, refused, stopped and dropped ones: memory and descriptors stay flat
  disconnects  clients that leave at random moments: nothing runs on, every page is free again
  /health      asked every 50 ms meanwhile, each time on a new connection: the slowest answer
Only Python's standard library; the clients share the machine with the server.
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEALTH_LIMIT_MS = 100
SLOW_READERS = 20
RSS_LIMIT_MB = 5


class Server:
    def __init__(self, winnow, folder):
        subprocess.run([sys.executable, ROOT / "tools/make_model.py", "--output", folder],
                       check=True, stdout=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [winnow, "serve", "--model-path", folder, "--port", "0", "--max-running-requests",
             "1024", "--max-total-tokens", "262144"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = None
        for line in self.process.stdout:
            if found := re.search(r"listening on http://[^:]+:(\d+)", line):
                self.port = int(found.group(1))
            if "ready to roll" in line:
                return
        raise SystemExit("the server did not start")

    def rss_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def state(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(request_bytes("GET", "/server_info", None, close=True))
            reply = b"".join(iter(lambda: s.recv(65536), b""))
        state = json.loads(reply.split(b"\r\n\r\n", 1)[1])["internal_states"][0]
        pages_free = (state["kv_available_tokens"] + state["kv_evictable_tokens"]
                      == state["memory_usage"]["token_capacity"])
        busy = state["num_running_reqs"] + state["num_queue_reqs"] + state["live_requests"]
        return busy, pages_free

    def quiet_after(self, seconds):
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            if self.state() == (0, True):
                return time.monotonic() - begin
            time.sleep(0.02)
        return None


def request_bytes(method, path, body, close=False):
    payload = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(payload)}\r\n" + ("Connection: close\r\n" if close else "")
    return head.encode() + b"\r\n" + payload


def completion(tokens, stream=True, **more):
    return {"prompt": "Once upon a time", "stream": stream, "ignore_eos": True,
            "max_tokens": tokens, **more}


def probe_health(port, stop, out):
    """Of a process of its own: the time from connect to the status line, in milliseconds."""
    times = []
    while not stop.is_set():
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
            s.sendall(request_bytes("GET", "/health", None, close=True))
            healthy = s.recv(4096).startswith(b"HTTP/1.1 200")
        times.append((time.monotonic() - begin) * 1e3 if healthy else float("inf"))
        time.sleep(0.05)
    out.put(times)


async def read_stream(port, tokens):
    """One stream from its own connection: time of the first and the last event, and whether whole."""
    begin = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes("POST", "/v1/completions", completion(tokens), close=True))
    first, received = None, bytearray()
    while chunk := await reader.read(65536):
        first = first or time.monotonic() - begin
        received += chunk
    writer.close()
    whole = b"data: [DONE]" in received and b'"finish_reason":"length"' in received
    return first, time.monotonic() - begin, whole


async def read_slowly(port, tokens, stop):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", port))
    await loop.sock_sendall(sock, request_bytes("POST", "/v1/completions", completion(tokens)))
    try:
        while not stop.is_set():
            if not await loop.sock_recv(sock, 1):
                break
            await asyncio.sleep(1)
    except ConnectionError:
        pass  # cut off
    sock.close()


async def many_streams(server, num, tokens):
    stop = asyncio.Event()
    slow = [asyncio.create_task(read_slowly(server.port, 4000, stop)) for _ in range(SLOW_READERS)]
    await asyncio.sleep(0.5)
    begin = time.monotonic()
    results = await asyncio.gather(*(read_stream(server.port, tokens) for _ in range(num)))
    seconds = time.monotonic() - begin
    stop.set()
    await asyncio.gather(*slow)
    whole = sum(r[2] for r in results)
    firsts, lasts = sorted(r[0] or 1e9 for r in results), sorted(r[1] for r in results)
    print(f"streams: {num} at once of {tokens} tokens beside {SLOW_READERS} slow readers: "
          f"{whole} whole in {seconds:.1f} s ({num * tokens / seconds:,.0f} tokens/s); first event "
          f"after {firsts[num // 2]:.2f} s (median), {firsts[-1]:.2f} s (last); end after "
          f"{lasts[0]:.2f} s (first), {lasts[-1]:.2f} s (last)")
    return whole == num


async def one_of_a_mix(port, kind):
    bodies = {"good": completion(1, stream=False), "stream": completion(2),
              "refused": {"prompt": [-1]}, "stopped": completion(8, stream=False, stop=["e", "a"]),
              "left": completion(500)}
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request_bytes("POST", "/v1/completions", bodies[kind], close=True))
    if kind == "left":
        await reader.read(200)
        writer.close()
        return True
    received = await reader.read(-1)
    writer.close()
    return received.startswith(b"HTTP/1.1 400" if kind == "refused" else b"HTTP/1.1 200")


async def mixed_requests(server, num, clients=32):
    draw = random.Random(1)
    kinds = draw.choices(["good", "stream", "refused", "stopped", "left"], [4, 2, 2, 1, 1], k=num)
    marks = []

    async def client(mine):
        good = 0
        for kind in mine:
            good += await one_of_a_mix(server.port, kind)
        return good

    good, step = 0, num // 10
    for start in range(0, num, step):
        part = kinds[start:start + step]
        good += sum(await asyncio.gather(*(client(part[i::clients]) for i in range(clients))))
        marks.append((server.quiet_after(60), server.rss_mb(), server.descriptors()))
    growth = marks[-1][1] - marks[1][1]
    print(f"requests: {num} from {clients} clients, {good} answered as they should; memory after "
          f"each tenth {', '.join(f'{m[1]:.1f}' for m in marks)} MB: {growth:+.1f} MB since the "
          f"second; descriptors {marks[1][2]} then, {marks[-1][2]} at the end")
    return (good == num and growth < RSS_LIMIT_MB and marks[-1][2] == marks[1][2]
            and all(m[0] is not None for m in marks))


async def leave(port, draw):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stream = draw.random() < 0.5
    n = draw.choice([1, 1, 2])
    writer.write(request_bytes("POST", "/v1/completions", completion(2000, stream, n=n)))
    await asyncio.sleep(draw.random() * 3)
    writer.transport.abort()


async def disconnects(server, num):
    draw = random.Random(2)
    await asyncio.gather(*(leave(server.port, draw) for _ in range(num)))
    quiet_s = server.quiet_after(60)
    busy, pages_free = server.state()
    print(f"disconnects: {num} within 3 s: {busy} requests left, every page free: {pages_free}"
          + ("" if quiet_s is None else f", {quiet_s:.2f} s after the last"))
    return quiet_s is not None


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("winnow")
    ap.add_argument("--streams", type=int, default=1000)
    ap.add_argument("--tokens", type=int, default=32)
    ap.add_argument("--requests", type=int, default=10000)
    ap.add_argument("--disconnects", type=int, default=500)
    args = ap.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with tempfile.TemporaryDirectory() as folder:
        server = Server(args.winnow, folder)
        stop, out = multiprocessing.Event(), multiprocessing.Queue()
        probe = multiprocessing.Process(target=probe_health, args=(server.port, stop, out))
        probe.start()
        held = [asyncio.run(many_streams(server, args.streams, args.tokens)),
                asyncio.run(mixed_requests(server, args.requests)),
                asyncio.run(disconnects(server, args.disconnects))]
        stop.set()
        times = sorted(out.get())
        probe.join()
        print(f"/health: {len(times)} answers, {times[len(times) // 2]:.1f} ms (median), "
              f"{times[len(times) * 99 // 100]:.1f} ms (99 %), {times[-1]:.1f} ms (slowest)")
        held.append(times[-1] < HEALTH_LIMIT_MS)
        server.process.terminate()
        held.append(server.process.wait(60) == 0)
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
