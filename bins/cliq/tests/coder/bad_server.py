"""MCP server on standard input and output that misbehaves as its argument says. No library does these things."""
import json
import sys
import time

mode = sys.argv[1]
calls = 0


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tools():
    names = ["work"] if not (mode == "changes" and calls) else ["other"]
    return [{"name": name, "description": "Works.", "inputSchema": {"type": "object", "properties": {}}} for name in names]


for line in sys.stdin:
    request = json.loads(line)
    method, answer = request.get("method"), {"jsonrpc": "2.0", "id": request.get("id")}
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        info = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "bad", "version": "1"}}
        send({**answer, "result": info})
    elif method == "tools/list":
        send({**answer, "result": {"tools": tools()}})
    elif method == "tools/call":
        calls += 1
        result = {"content": [{"type": "text", "text": "done"}]}
        if mode == "dies":
            sys.exit(1)
        if mode == "hangs":
            time.sleep(600)
        if mode == "malformed":
            sys.stdout.write("this is not JSON\n{\"jsonrpc\": \"2.0\", \"id\": 7}\n")
        if mode == "huge":
            result = {"content": [{"type": "text", "text": "x" * 5_000_000}]}
        if mode == "endless":
            while True:
                sys.stdout.write("y" * 1_000_000)
        if mode == "changes":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            time.sleep(0.2)
        send({**answer, "result": result})
    elif "id" in request:
        send({**answer, "error": {"code": -32601, "message": "unknown"}})
