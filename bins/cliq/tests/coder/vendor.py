"""A vendor's program that keeps sessions, with a scripted model behind it.

    vendor.py KIND MODEL STORE ARGUMENTS...

It takes the arguments and prints the lines of KIND (`claude-code`, `cursor`, `gemini`, `codex`). A session is the list of its messages in STORE, which
has the prompt before the model is asked. `usage.jsonl` there has the tokens of each request.
"""

import json
import os
import pathlib
import sys
import urllib.request
import uuid

kind, model, store, args = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
with open(store / "arguments.jsonl", "a") as log:
    log.write(json.dumps(args) + "\n")


def option(name):
    return args[args.index(name) + 1] if name in args else None


def out(**line):
    print(json.dumps(line), flush=True)


resumed = option("resume" if kind == "codex" else "--resume")
session = resumed or option("--session-id") or str(uuid.uuid4())
path = store / f"{session}.json"
if resumed and not path.exists():
    if kind == "claude-code":
        out(type="result", subtype="error_during_execution", is_error=True, session_id=session, errors=[f"No conversation found with session ID: {session}"])
        sys.exit(1)
    said = {
        "cursor": f"Chat {session} not found",
        "gemini": f'Error resuming session: Invalid session identifier "{session}".',
        "codex": f"Error: thread/resume: thread/resume failed: no rollout found for thread id {session} (code -32600)",
    }
    sys.exit(said[kind])
state = json.loads(path.read_text()) if path.exists() else {"messages": [], "total": [0, 0, 0]}


def save():
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(state))
    part.rename(path)


def ask(prompt):
    state["messages"].append({"role": "user", "content": [{"type": "text", "text": prompt}]})
    save()
    # The last message of the conversation so far is what a provider would read from its cache.
    messages = json.loads(json.dumps(state["messages"]))
    messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    body = {"model": "m", "max_tokens": 1000, "stream": False, "messages": messages}
    request = urllib.request.Request(model + "/v1/messages", json.dumps(body).encode(), {"content-type": "application/json"})
    reply = json.loads(urllib.request.urlopen(request).read())
    text = "".join(part.get("text", "") for part in reply["content"])
    usage = reply["usage"]
    cached = usage.get("cache_read_input_tokens", 0)
    tokens = [usage["input_tokens"] + cached + usage.get("cache_creation_input_tokens", 0), usage["output_tokens"], cached]
    state["messages"].append({"role": "assistant", "content": [{"type": "text", "text": text}]})
    state["total"] = [a + b for a, b in zip(state["total"], tokens)]
    save()
    with open(store / "usage.jsonl", "a") as log:
        log.write(json.dumps(tokens) + "\n")
    return text, tokens


def claude(prompt):
    out(type="system", subtype="init", session_id=session, model="m")
    text, (tokens_in, tokens_out, cached) = ask(prompt)
    usage = {"input_tokens": tokens_in - cached, "cache_read_input_tokens": cached, "output_tokens": tokens_out}
    content = [{"type": "text", "text": text}]
    out(type="assistant", session_id=session, message={"id": str(uuid.uuid4()), "content": content, "usage": usage})
    out(type="result", subtype="success", is_error=False, result=text, session_id=session, usage=usage)


if kind == "claude-code":
    for line in sys.stdin:
        claude(json.loads(line)["message"]["content"][0]["text"])
elif kind == "cursor":
    claude(args[-1])
elif kind == "gemini":
    out(type="init", session_id=session, model="m")
    text, (tokens_in, tokens_out, cached) = ask(sys.stdin.read())
    out(type="message", role="assistant", content=text, delta=True)
    out(type="result", status="success", stats={"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out, "cached": cached})
else:
    out(type="thread.started", thread_id=session)
    out(type="turn.started")
    text, _ = ask(sys.stdin.read())
    # Codex counts the whole session.
    tokens_in, tokens_out, cached = state["total"]
    out(type="item.completed", item={"id": "i", "type": "agent_message", "text": text})
    out(type="turn.completed", usage={"input_tokens": tokens_in, "cached_input_tokens": cached, "output_tokens": tokens_out})
