"""The parts of scripts/soak: a clock, certificates, a server and its disk."""
import contextlib
import http.client
import json
import math
import os
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLIQ = pathlib.Path(os.environ.get("CLIQ", ROOT / "target/debug/cliq")).resolve()
FAKETIME = next(map(str, pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), "")
# Real seconds after which something that must happen is given up. Nothing is measured by it.
PATIENCE = 180
DISK = 400 << 20


class Failed(Exception):
    pass


def until(done, what, patience=PATIENCE):
    deadline = time.monotonic() + patience
    while True:
        value = done()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed(f"{what}: it takes too long")
        time.sleep(0.05)


class Clock:
    """The time of all programs here: runs `speed` times as fast as that of the machine. Timers run as ever."""

    def __init__(self, place, speed):
        self.file, self.speed, self.began = place / "clock", speed, time.monotonic()
        self.tick()
        variables = {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        # The shared memory of libfaketime ends with the first program: one that lasts.
        self.first = subprocess.Popen(["sleep", "1000000"], env={**os.environ, **variables})
        names = [f"faketime_sem_{self.first.pid}", f"faketime_shm_{self.first.pid}"]
        self.shared = [pathlib.Path(f"/dev/shm/sem.{names[0]}"), pathlib.Path(f"/dev/shm/{names[1]}")]
        until(lambda: all(file.exists() for file in self.shared), "libfaketime starts")
        self.environment = {**variables, "FAKETIME_SHARED": f"/{names[0]} /{names[1]}"}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def hours(self):
        """Hours of the soak that have passed."""
        return (time.monotonic() - self.began) * self.speed / 3600

    def offset(self):
        return (time.monotonic() - self.began) * (self.speed - 1)

    def now(self):
        return time.time() + self.offset()

    def tick(self):
        new = self.file.with_suffix(".new")
        new.write_text(f"+{self.offset():.1f}s\n")
        new.rename(self.file)

    def run(self):
        while not self.ended.wait(0.1):
            self.tick()

    def end(self):
        # Its file is in a directory that is removed after this.
        self.ended.set()
        self.thread.join()
        self.first.kill()
        self.first.wait()
        for file in self.shared:
            file.unlink(missing_ok=True)


class Certificates:
    """An authority of the soak, and certificates that it signs for some hours of its clock."""

    def __init__(self, place, clock):
        self.place, self.clock = place, clock
        place.mkdir()
        self.openssl(-48, "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=soak")
        (place / "names").write_text("subjectAltName=IP:127.0.0.1\n")

    def openssl(self, hours, arguments):
        # Certificates are for whole days: one for fewer hours is signed in the past.
        shift = self.clock.offset() + hours * 3600
        env = {**os.environ, "LD_PRELOAD": FAKETIME, "FAKETIME": f"{shift:+.0f}s"}
        subprocess.run(["openssl", *arguments.split()], cwd=self.place, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def issue(self, hours):
        """Puts a certificate for so many hours from now on in its place, and a new key."""
        self.openssl(0, "req -newkey rsa:2048 -nodes -keyout new.key -out new.csr -subj /CN=127.0.0.1")
        days = math.ceil(hours / 24)
        self.openssl(hours - 24 * days, f"x509 -req -in new.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out new.pem -days {days} -extfile names")
        (self.place / "new.pem").rename(self.place / "cert.pem")
        (self.place / "new.key").rename(self.place / "key.pem")

    def visit(self, port):
        """A client with the clock of the soak. Gives the end of its error, which is empty if all went well."""
        env = {**os.environ, **self.clock.environment}
        done = subprocess.run(["curl", "-sS", "--noproxy", "*", "--max-time", "60", "--cacert", "ca.pem", f"https://127.0.0.1:{port}/healthz"], cwd=self.place, env=env,
                              capture_output=True, text=True)
        return "" if done.stdout == "ok\n" else done.stderr.strip() or f"exit status {done.returncode}"


class Server:
    def __init__(self, place, clock):
        self.place, self.clock, self.home = place, clock, place / "disk/home"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith("CLIQ_")}, **clock.environment, "CLIQ_HOME": str(self.home)}
        # Requests are made with any certificate: those of the checks look at it.
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.process, self.token, self.requests = None, "", 0
        # Answers that are errors of the server, or none: hour, request, status.
        self.errors = []
        self.lock = threading.Lock()

    def start(self):
        record = self.home / "server.json"
        with open(self.place / "server.log", "a") as log:
            self.process = subprocess.Popen(
                [CLIQ, "server", "run", "--port", str(self.port), "--tls-cert", self.place / "tls/cert.pem", "--tls-key", self.place / "tls/key.pem"],
                env=self.environment, cwd=self.place, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def is_ready():
            if self.process.poll() is not None:
                raise Failed(f"the server ended with {self.process.returncode}: {self.log()[-2000:]}")
            with contextlib.suppress(OSError, ValueError, KeyError):
                known = json.loads(record.read_text())
                if known["pid"] == self.process.pid:
                    self.token = known["token"]
                    return self.get("/readyz")[0] == 200
            return False

        until(is_ready, "the server starts")

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(PATIENCE)

    def log(self):
        return (self.place / "server.log").read_text(errors="replace")

    def send(self, method, path, body=None, headers=None):
        """A request; gives status and body. A server that is away is status 0."""
        with self.lock:
            self.requests += 1
            number = self.requests
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json", "x-request-id": f"soak-{number}", **(headers or {})}
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=self.tls)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            status, answered = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            status, answered = 0, b""
        finally:
            connection.close()
        if status == 0 or status >= 500:
            self.errors.append((self.clock.hours(), f"{method} {path}", status))
        return status, answered, number

    def get(self, path):
        return self.send("GET", path)[:2]

    def json(self, path):
        """The document at a path, whatever happens to the server meanwhile."""

        def answered():
            status, body = self.get(path)
            return [json.loads(body)] if status == 200 else None

        return until(answered, f"GET {path}")[0]

    def state(self, run):
        status, body = self.get(f"/api/v1/runs/{run}")
        return json.loads(body)["state"] if status == 200 else {404: "unknown"}.get(status)

    def cliq(self, *arguments):
        return subprocess.run([CLIQ, *arguments], env=self.environment, cwd=self.place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)

    def pages(self, path, key):
        """All entries of a list."""
        found, cursor = [], ""
        while True:
            page = self.json(f"{path}?limit=200{cursor}")
            found += page[key]
            if page.get("next") is None:
                return found
            cursor = f"&cursor={urllib.parse.quote(str(page['next']))}"


class Disk:
    """A file system of its own, which can be full."""

    def __init__(self, place):
        self.place = place
        place.mkdir()
        self.is_own = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place], capture_output=True).returncode == 0

    def fill(self):
        """Takes what is free. Gives whether nothing is: other programs may free something meanwhile."""
        with open(self.place / "filler", "ab", buffering=0) as file:
            for piece in (1 << 20, 512):
                with contextlib.suppress(OSError):
                    while file.write(bytes(piece)) == piece:
                        pass
        return os.statvfs(self.place).f_bavail == 0

    def free(self):
        (self.place / "filler").unlink()

    def end(self):
        if self.is_own:
            subprocess.run(["umount", "-l", self.place], check=False)


def figures(pid):
    """Megabytes of memory, and descriptors."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024, len(os.listdir(f"/proc/{pid}/fd"))
