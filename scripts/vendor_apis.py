"""Server that plays the models behind real agents, over the APIs that they call (scripts/acp-agents).

The Messages API, the Responses API, the Chat Completions API and the Gemini API, with and without streaming. The conversation alone decides the
reply: the first request of a task gets a call that writes `one.txt`, the result of a call gets an answer, and a later message of the user gets a
call that writes `two.txt`. Requests without tools, such as those for a title, get a short text, or data of the schema that they ask for.
"""

import http.server
import json
import os
import sys
import threading

ANSWER = "I did it.\n\n```json\n{\"answer\": 42}\n```\n"
USAGE = (100, 10)


def flat(value):
    """All texts of a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(flat(part) for part in value.values())
    if isinstance(value, list):
        return "\n".join(flat(part) for part in value)
    return ""


def sample(schema):
    """A value that fits a JSON Schema of an agent's own requests, such as the choice of a model."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {name: sample(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "integer": 1, "number": 1, "boolean": True}.get(kind, "A task")


class Request:
    """Conversation of a request, for all APIs: tools by name with their parameters, and the messages as (role, text)."""

    def __init__(self, api, body):
        self.api, self.body = api, body
        self.stream = bool(body.get("stream"))
        self.tools, self.turns = {}, []
        getattr(self, "_" + api)(body)
        self.results = sum(role == "tool" for role, _ in self.turns)
        self.text = "\n".join(text for _, text in self.turns)

    def _anthropic(self, body):
        self.tools = {tool["name"]: tool.get("input_schema", {}).get("properties", {}) for tool in body.get("tools") or []}
        for message in body.get("messages", []):
            parts = message["content"] if isinstance(message["content"], list) else [{"type": "text", "text": message["content"]}]
            for part in parts:
                if part.get("type") == "tool_result":
                    self.turns.append(("tool", flat(part.get("content"))))
                elif part.get("type") == "tool_use":
                    self.turns.append(("assistant", flat(part.get("input"))))
                elif part.get("type") == "text" and not part["text"].lstrip().startswith("<system-reminder>"):
                    self.turns.append((message["role"], part["text"]))

    def _responses(self, body):
        for tool in body.get("tools") or []:
            if tool.get("type") in ("function", "custom"):
                self.tools[tool["name"]] = tool.get("parameters", {}).get("properties", {})
        for item in body.get("input") or []:
            kind = item.get("type", "message")
            if kind in ("function_call_output", "custom_tool_call_output"):
                self.turns.append(("tool", flat(item.get("output"))))
            elif kind in ("function_call", "custom_tool_call"):
                self.turns.append(("assistant", flat(item.get("arguments") or item.get("input"))))
            elif kind == "message" and item.get("role") in ("user", "assistant"):
                text = flat(item.get("content"))
                if not text.lstrip().startswith("<"):
                    self.turns.append((item["role"], text))

    def _chat(self, body):
        for tool in body.get("tools") or []:
            self.tools[tool["function"]["name"]] = tool["function"].get("parameters", {}).get("properties", {})
        for message in body.get("messages", []):
            role = message.get("role")
            if role in ("user", "assistant", "tool"):
                self.turns.append((role, flat(message.get("content")) + flat(message.get("tool_calls") or [])))

    def _gemini(self, body):
        self.stream = True
        for tool in body.get("tools") or []:
            for one in tool.get("functionDeclarations") or []:
                schema = one.get("parametersJsonSchema") or one.get("parameters") or {}
                self.tools[one["name"]] = schema.get("properties", {})
        for content in body.get("contents") or []:
            for part in content.get("parts") or []:
                if "functionResponse" in part:
                    self.turns.append(("tool", flat(part["functionResponse"])))
                elif "functionCall" in part:
                    self.turns.append(("assistant", flat(part["functionCall"].get("args"))))
                elif part.get("text"):
                    self.turns.append(("user" if content.get("role") == "user" else "assistant", part["text"]))


def write_call(tools, cwd, name):
    """The call that writes a file, with the tools of an agent: its name and arguments."""
    path = os.path.join(cwd, name)
    contents = ("content", "file_text", "contents", "text")
    paths = ("file_path", "filePath", "absolute_path", "path", "filename")
    for tool in ("Write", "write_file", "write", "create", "write_text_file", "create_file"):
        own = tools.get(tool)
        if own is None:
            continue
        at = next((key for key in paths if key in own), None)
        content = next((key for key in contents if key in own), None)
        if at and content:
            rest = {"overwrite": True} if "overwrite" in own else {}
            return tool, {at: path, content: "done\n", **rest}
    command = f"echo done > {path}"
    for tool in ("exec_command", "shell_command", "shell", "run_shell_command", "bash", "Bash", "terminal", "execute"):
        own = tools.get(tool)
        if own is None:
            continue
        extra = {"description": "Writes a file."} if "description" in own else {}
        if "escalated" in os.environ.get("VENDOR_APIS", "") and "sandbox_permissions" in own:
            extra |= {"sandbox_permissions": "require_escalated", "justification": "It has to be written."}
        if "cmd" in own:
            return tool, {"cmd": command, **extra}
        if own.get("command", {}).get("type") == "array":
            return tool, {"command": ["sh", "-c", command], **extra}
        return tool, {"command": command, **extra}
    return None


class Vendor:
    """Server with its state: where files are written, what was asked, and what waits."""

    def __init__(self):
        self.cwd = "."
        self.requests = []
        self.lock = threading.Lock()
        self.calls = 0
        # Called with each request that has tools, before its reply.
        self.before_reply = None
        vendor = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                if os.environ.get("VERBOSE"):
                    sys.stderr.write("  %s\n" % (args[0] % args[1:]))

            def do_GET(self):
                models = [{"id": "scripted-1", "object": "model", "name": "models/scripted-1", "owned_by": "nobody"}]
                self.json({"object": "list", "data": models, "models": models})

            def do_HEAD(self):
                self.json({})

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(raw or b"{}")
                except ValueError:
                    body = {}
                path = self.path.split("?")[0]
                if path.endswith(("count_tokens", "countTokens")):
                    return self.json({"input_tokens": 100, "totalTokens": 100})
                api = ("anthropic" if path.endswith("/messages") else "responses" if path.endswith("/responses")
                       else "chat" if path.endswith("/chat/completions") else "gemini" if "enerateContent" in path else None)
                if api is None:
                    return self.json({})
                request = Request(api, body)
                if api == "gemini":
                    request.stream = "stream" in path
                call, text = vendor.reply(request)
                try:
                    getattr(self, "send_" + api)(request, call, text)
                except ConnectionError:
                    # The agent was killed or cancelled meanwhile.
                    self.close_connection = True

            def json(self, value):
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            def events(self, events, named=False, end=None):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                for event in events:
                    name = f"event: {event['type']}\n" if named else ""
                    self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
                if end:
                    self.wfile.write(f"data: {end}\n\n".encode())
                self.wfile.flush()
                self.close_connection = True

            def send_anthropic(self, request, call, text):
                if call:
                    block = {"type": "tool_use", "id": vendor.new_id("toolu"), "name": call[0], "input": {}}
                    delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
                    whole, stop = {**block, "input": call[1]}, "tool_use"
                else:
                    block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": text}
                    whole, stop = {"type": "text", "text": text}, "end_turn"
                message = {"id": vendor.new_id("msg"), "type": "message", "role": "assistant", "model": request.body.get("model", "m"),
                           "content": [], "stop_reason": None, "stop_sequence": None,
                           "usage": {"input_tokens": USAGE[0], "output_tokens": 1}}
                if not request.stream:
                    return self.json({**message, "content": [whole], "stop_reason": stop})
                self.events([
                    {"type": "message_start", "message": message},
                    {"type": "content_block_start", "index": 0, "content_block": block},
                    {"type": "content_block_delta", "index": 0, "delta": delta},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                     "usage": {"output_tokens": USAGE[1]}},
                    {"type": "message_stop"},
                ], named=True)

            def send_responses(self, request, call, text):
                if call:
                    item = {"type": "function_call", "id": vendor.new_id("fc"), "call_id": vendor.new_id("call"), "status": "completed",
                            "name": call[0], "arguments": json.dumps(call[1])}
                else:
                    item = {"type": "message", "id": vendor.new_id("msg"), "role": "assistant", "status": "completed",
                            "content": [{"type": "output_text", "text": text, "annotations": []}]}
                usage = {"input_tokens": USAGE[0], "input_tokens_details": {"cached_tokens": 0}, "output_tokens": USAGE[1],
                         "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": sum(USAGE)}
                response = {"id": vendor.new_id("resp"), "object": "response", "status": "in_progress", "output": [], "model": "scripted-1"}
                done = {**response, "status": "completed", "output": [item], "usage": usage}
                if not request.stream:
                    return self.json(done)
                events = [{"type": "response.created", "response": response}]
                events.append({"type": "response.output_item.added", "output_index": 0, "item": item})
                events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
                events.append({"type": "response.completed", "response": done})
                self.events([{**event, "sequence_number": n} for n, event in enumerate(events)], named=True)

            def send_chat(self, request, call, text):
                calls = [{"index": 0, "id": vendor.new_id("call"), "type": "function",
                          "function": {"name": call[0], "arguments": json.dumps(call[1])}}] if call else None
                message = {"role": "assistant", "content": None if call else text, **({"tool_calls": calls} if calls else {})}
                finish = "tool_calls" if call else "stop"
                usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
                head = {"id": vendor.new_id("chatcmpl"), "created": 1, "model": request.body.get("model", "scripted-1")}
                if not request.stream:
                    return self.json({**head, "object": "chat.completion", "usage": usage,
                                      "choices": [{"index": 0, "message": message, "finish_reason": finish}]})
                chunk = {**head, "object": "chat.completion.chunk"}
                self.events([
                    {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                    {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
                    {**chunk, "choices": [], "usage": usage},
                ], end="[DONE]")

            def send_gemini(self, request, call, text):
                part = {"functionCall": {"name": call[0], "args": call[1], "id": vendor.new_id("call")}} if call else {"text": text}
                chunk = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                         "usageMetadata": {"promptTokenCount": USAGE[0], "candidatesTokenCount": USAGE[1], "totalTokenCount": sum(USAGE)},
                         "modelVersion": "scripted-1"}
                self.events([chunk]) if request.stream else self.json(chunk)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_port}"

    def next_file(self, request):
        """Name of the file that the model writes next: by the number of calls so far. Can be replaced."""
        return "two.txt" if request.results else "one.txt"

    def new_id(self, prefix):
        with self.lock:
            self.calls += 1
            return f"{prefix}_{self.calls}"

    def reply(self, request):
        """The reply to a request: a call or a text."""
        last = request.turns[-1][0] if request.turns else "user"
        if not request.tools:
            config = request.body.get("generationConfig") or {}
            schema = config.get("responseJsonSchema") or config.get("responseSchema")
            return None, json.dumps(sample(schema)) if schema else "A task"
        with self.lock:
            self.requests.append(request)
        if self.before_reply:
            self.before_reply(request)
        if last == "tool":
            return None, ANSWER
        call = write_call(request.tools, self.cwd, self.next_file(request))
        return call, ANSWER


if __name__ == "__main__":
    vendor = Vendor()
    vendor.cwd = os.getcwd()
    print(vendor.base, flush=True)
    threading.Event().wait()
