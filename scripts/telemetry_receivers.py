"""The run of `cliq demo --model` in receivers that others wrote, as their APIs and pages show it."""

import collections
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

CLIQ = os.environ["CLIQ"]
# US dollars per million tokens of the scripted model, here and in Phoenix, which prices by a table of its own.
PRICES = {"in": 2, "out": 8}
OPERATIONS = ["invoke_workflow", "invoke_agent", "chat", "execute_tool", "command"]
failures = []


def check(receiver, what, holds, detail=""):
    print(f"{'ok' if holds else 'FAILED'}  {receiver}: {what}{'' if holds else f': {detail}'}", flush=True)
    if not holds:
        failures.append(what)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(url, data=None):
    headers = {"content-type": "application/json"} if data else {}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10) as answer:
        return answer.read()


def wait_until(holds, what, process, log, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit(f"the receiver ended with {process.returncode}: {open(log).read()[-800:]}")
        with contextlib.suppress(OSError):
            if found := holds():
                return found
        time.sleep(0.3)
    raise SystemExit(f"not within {seconds} s: {what}: {open(log).read()[-800:]}")


@contextlib.contextmanager
def serving(command, is_ready, log, **options):
    with open(log, "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, **options)
    try:
        wait_until(is_ready, "the receiver is ready", process, log)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


class Demo:
    """The run of the demo, and what cliq itself says of it."""

    def __init__(self, root, endpoint):
        home = f"{root}/home"
        # Variables of this shell would go before the settings.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self.env = {**kept, "CLIQ_HOME": home, "HOME": root, "NO_COLOR": "1", "OTEL_BSP_SCHEDULE_DELAY": "200"}
        self.root = root
        for name, price in PRICES.items():
            self.cliq(root, "settings", "set", "-g", f"prices.scripted.{name}", str(price))
        self.cliq(root, "settings", "set", "-g", "telemetry.endpoint", endpoint)
        self.cliq(root, "settings", "set", "-g", "telemetry.signals", "traces")
        os.makedirs(f"{root}/demo")
        self.cliq(f"{root}/demo", "demo", "--model")
        found = [place for place, dirs, _ in os.walk(f"{root}/demo") if ".cliq" in dirs]
        self.project = found[0]
        sent = json.loads(self.cliq(self.project, "telemetry", "send", "--json"))
        if not sent["complete"] or sent["problem"]:
            raise SystemExit(f"the receiver did not take all: {sent}")
        self.status = json.loads(self.cliq(self.project, "status", "--json"))

    def cliq(self, place, *arguments):
        done = subprocess.run([CLIQ, *arguments], cwd=place, env=self.env, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise SystemExit(f"cliq {' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def usage(self, key):
        return sum((phase.get("usage") or {}).get(key) or 0 for phase in self.status["phases"])


def picture(url, path):
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1500,1100"]
    command += ["--virtual-time-budget=15000", f"--screenshot={path}", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode == 0 and os.path.getsize(path) > 20_000


def check_tree(receiver, spans, parent_of):
    """Checks the counts of operations, and that the spans are one tree below the run. Spans are (id, name)."""
    names = dict(spans)
    count = collections.Counter(next((one for one in OPERATIONS if name.startswith(one)), "") for name in names.values())
    for operation in OPERATIONS:
        check(receiver, f"{count[operation]} spans `{operation}`", count[operation] > 0, sorted(names.values()))
    check(receiver, "no span came twice", len(names) == len(spans), len(spans))
    roots = [name for span, name in spans if parent_of(span) not in names]
    check(receiver, "the run is the only root", len(roots) == 1 and roots[0].startswith("invoke_workflow"), roots)

    def above(span):
        while (span := parent_of(span)) in names:
            yield names[span]

    chats = [span for span, name in spans if name.startswith("chat")]
    below = all(any(name.startswith("invoke_agent") for name in above(span)) for span in chats)
    check(receiver, "replies are below their agents", below)


def phoenix(place, root):
    port, grpc = free_port(), free_port()
    base, log = f"http://127.0.0.1:{port}", f"{root}/phoenix.log"
    env = {
        **os.environ,
        "HOME": root,
        "PHOENIX_WORKING_DIR": root,
        "PHOENIX_SQL_DATABASE_URL": f"sqlite:///{root}/phoenix.db",
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_ENABLE_AUTH": "false",
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
        "PHOENIX_ENABLE_MCP_SERVER": "false",
    }

    def ask(query):
        answer = json.loads(get(f"{base}/graphql", json.dumps({"query": query}).encode()))
        if "errors" in answer:
            raise SystemExit(f"Phoenix: {answer['errors']}")
        return answer["data"]

    command = [f"{place}/phoenix/bin/phoenix", "serve"]
    with serving(command, lambda: get(f"{base}/healthz") is not None, log, env=env, cwd=root) as process:
        costs = [
            f'{{tokenType: "{kind}", costPerMillionTokens: {PRICES[name]}, kind: {side}}}'
            for kind, name, side in [("input", "in", "PROMPT"), ("output", "out", "COMPLETION")]
        ]
        made = f'{{name: "scripted", provider: null, namePattern: "scripted", costs: [{", ".join(costs)}]}}'
        ask(f"mutation {{createModel(input: {made}) {{__typename}}}}")
        # Phoenix reads its table of prices every few seconds.
        time.sleep(10)
        demo = Demo(root, base)
        query = """{getProjectByName(name: "default") {traceCount tokenCountTotal costSummary {total {cost}}
            spans(first: 1000) {edges {node {name spanId parentId spanKind tokenCountTotal trace {traceId}}}}}}"""

        def arrived():
            found = ask(query)["getProjectByName"]
            nodes = [edge["node"] for edge in found["spans"]["edges"]] if found else []
            # Phoenix answers before it has stored a request, and prices are added after that.
            is_there = any(node["name"].startswith("invoke_workflow") for node in nodes)
            return (found, nodes) if is_there and found["costSummary"]["total"]["cost"] else None

        wait_until(arrived, "the run and its cost are there", process, log)
        time.sleep(4)
        project, nodes = arrived()
        parents = {node["spanId"]: node["parentId"] for node in nodes}
        check("Phoenix", "one trace", project["traceCount"] == 1, project["traceCount"])
        check_tree("Phoenix", [(node["spanId"], node["name"]) for node in nodes], parents.get)
        kinds = {node["name"].split()[0]: node["spanKind"] for node in nodes}
        expected = {"invoke_workflow": "chain", "invoke_agent": "agent", "chat": "llm", "execute_tool": "tool"}
        check("Phoenix", "kinds of spans", {name: kinds.get(name) for name in expected} == expected, kinds)
        tokens, known = int(project["tokenCountTotal"]), demo.usage("tokens_in") + demo.usage("tokens_out")
        check("Phoenix", f"{tokens} tokens, as cliq says", 0 < tokens == known, known)
        cost, known = project["costSummary"]["total"]["cost"], demo.usage("cost_usd")
        check("Phoenix", f"{cost:.6f} US dollars, as cliq says", cost > 0 and abs(cost - known) < 1e-6, known)
        trace = nodes[0]["trace"]["traceId"]
        path = f"{place}/phoenix.png"
        check("Phoenix", f"a picture of the trace: {path}", picture(f"{base}/redirects/traces/{trace}", path))


JAEGER = """
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines: {traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}}
  telemetry: {metrics: {level: none}}
extensions:
  jaeger_storage: {backends: {mem: {memory: {max_traces: 1000}}}}
  jaeger_query:
    storage: {traces: mem}
    http: {endpoint: "127.0.0.1:%d"}
    grpc: {endpoint: "127.0.0.1:%d"}
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {jaeger_storage_exporter: {trace_storage: mem}}
"""


def jaeger(place, root):
    query, grpc, otlp = free_port(), free_port(), free_port()
    log, config = f"{root}/jaeger.log", f"{root}/jaeger.yaml"
    with open(config, "w") as file:
        file.write(JAEGER % (query, grpc, otlp))
    base = f"http://127.0.0.1:{query}"
    command = [f"{place}/jaeger/jaeger", "--config", config]
    with serving(command, lambda: get(f"{base}/api/services") is not None, log, cwd=root) as process:
        demo = Demo(root, f"http://127.0.0.1:{otlp}")

        def arrived():
            traces = json.loads(get(f"{base}/api/traces?service=cliq&limit=10"))["data"]
            names = [span["operationName"] for trace in traces for span in trace["spans"]]
            return traces if any(name.startswith("invoke_workflow") for name in names) else None

        traces = wait_until(arrived, "the run is there", process, log)
        check("Jaeger", "one trace", len(traces) == 1, len(traces))
        spans = traces[0]["spans"]
        parents = {
            span["spanID"]: next((one["spanID"] for one in span["references"] if one["refType"] == "CHILD_OF"), None)
            for span in spans
        }
        check_tree("Jaeger", [(span["spanID"], span["operationName"]) for span in spans], parents.get)
        warnings = [warning for span in spans for warning in span.get("warnings") or []]
        check("Jaeger", "no span has a warning", not warnings, warnings)

        def total(key):
            tags = [tag for span in spans for tag in span["tags"] if span["operationName"].startswith("chat")]
            return sum(tag["value"] for tag in tags if tag["key"] == key)

        for key, own in [("gen_ai.usage.input_tokens", "tokens_in"), ("gen_ai.usage.output_tokens", "tokens_out")]:
            check("Jaeger", f"{total(key)} {own}, as cliq says", 0 < total(key) == demo.usage(own), demo.usage(own))
        cost, known = total("cliq.usage.cost_usd"), demo.usage("cost_usd")
        check("Jaeger", f"{cost:.6f} US dollars, as cliq says", cost > 0 and abs(cost - known) < 1e-6, known)


def main():
    place, *receivers = sys.argv[1:]
    for receiver in receivers:
        with tempfile.TemporaryDirectory() as root:
            {"phoenix": phoenix, "jaeger": jaeger}[receiver](place, root)
    sys.exit(1 if failures else 0)


main()
