"""A `winnow serve` of our own for one configuration, and requests to it."""
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

TIMEOUT_S = 900  # of one request: a hung server must end the run, a busy machine must not


class Server:
    """Starts the program on a free port; stops it when the `with` block ends."""

    def __init__(self, program, model, flags, threads=0, log=None):
        command = [str(program), "serve", "--model-path", str(model), "--port", "0",
                   "--served-model-name", "model", "--reasoning-parser", "glm45",
                   "--max-total-tokens", "65536", *flags]
        if threads:
            command += ["--threads", str(threads)]
        self.log = log or []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True)
        self.url = self._wait()

    def _wait(self):
        url = None
        for line in self.process.stdout:
            self.log.append(line)
            found = re.search(r"listening on (http://127\.0\.0\.1:\d+)", line)
            url = found.group(1) if found else url
            if "ready to roll" in line:
                return url
        self.process.communicate()
        raise SystemExit("the server did not start:\n" + "".join(self.log[-5:]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")[:500]
            raise SystemExit(f"{path}: {error.code} {text}") from error
        except urllib.error.URLError as error:
            raise SystemExit(f"{path}: {error.reason}") from error
