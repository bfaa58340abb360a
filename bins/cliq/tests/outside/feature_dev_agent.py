#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys
message = json.load(sys.stdin)
phase, workspace = message["phase"], pathlib.Path(message["workspace"])
def say(**more):
    with open(message["signal_file"], "a") as file:
        file.write(json.dumps({"ts": "2026-11-22T00:00:00.000Z", "version": 1, "type": "phase", **more}) + "\n")
def hand_over(text):
    for channel in message["outgoing"]:
        envelope = {"version": 1, "phase_type": "standard", "phase": phase["name"], "agent": phase["agent"], "text": text}
        pathlib.Path(channel["dir"], "handoff.json").write_text(json.dumps(envelope))
say(status="ok")
repos = [workspace] if (workspace / ".git").exists() else [path for path in sorted(workspace.iterdir()) if (path / ".git").exists()]
result = {}
for repo in repos:
    assert subprocess.run(["git", "branch", "--show-current"], cwd=repo, capture_output=True, text=True).stdout.strip() == message["inputs"]["target_branch"]
    if phase["name"] == "tester":
        (repo / "sum.test.js").write_text("const test = require('node:test'); const assert = require('node:assert');\nconst { sum } = require('./sum.js');\ntest('sums', () => assert.strictEqual(sum(2, 3), 5));\n")
    if phase["name"] == "developer":
        # The first try is wrong.
        sign = "+" if phase.get("routed_by") else "-"
        (repo / "sum.js").write_text(f"exports.sum = (a, b) => a {sign} b;\n")
if phase["name"] == "reviewer":
    failed = [check["name"] for check in message["gate"]["checks"] if not check["pass"]]
    verdict = {"outcome": "PASS", "reason": "all checks pass"}
    if failed:
        verdict = {"outcome": "ROUTE", "target": "git-resolver" if "merge-clean" in failed else "developer", "reason": ", ".join(failed)}
    result = {"verdict": verdict}
if phase["name"] == "git-resolver":
    for repo in repos:
        git = ["git", "-c", "user.name=R", "-c", "user.email=r@example.com"]
        subprocess.run(["git", "add", "-A"], cwd=repo); subprocess.run([*git, "commit", "-qm", "work"], cwd=repo)
        subprocess.run([*git, "merge", "-q", "-X", "ours", "origin/HEAD"], cwd=repo)
hand_over(f"{phase['name']} was here")
say(status="complete", result=result)
