"""An API server by kmock, and a node that is played: it starts what Jobs ask for as processes here, or says what it is told to say.

    mock.py SCENARIO

prints its port. SCENARIO is JSON: without more, the command of the pod is started; "status" is what the pod has in its place, "no_pod" and "no_claim" are what
they say; "expire" lets each first watch end as one that is too old; "forbid" is a list of "VERB RESOURCE" that are refused, after a second. On standard input,
"requests" asks for what was asked for by others, "objects KIND" for objects, and "forbid VERB RESOURCE" refuses that from then on, at once.
"""
import asyncio
import base64
import json
import os
import sys
import tempfile
import uuid

import aiohttp.web
import kmock

scenario = json.loads(sys.argv[1])
asked = []
expired = set()
forbidden = set()


class Server(kmock.KubernetesEmulator):
    """What kmock leaves out: each object has an id and a version."""

    version = 1

    async def _handle(self, request):
        if request.resource is not None:
            verb = {"FETCH": "get", "UPDATE": "patch"}.get(request.action.value, request.action.value.lower())
            what = f"{verb} {request.resource.plural}"
            if "kmock" not in request.headers.get("User-Agent", "") and "aiohttp" not in request.headers.get("User-Agent", ""):
                asked.append(what)
            if what in scenario.get("forbid", []):
                await asyncio.sleep(1)
            if what in scenario.get("forbid", []) or what in forbidden:
                raise kmock.KubernetesError(status=403, reason="Forbidden", message=f'{request.resource.plural} is forbidden: User "x" cannot {what}')
            is_old = request.params.get("resourceVersion") != "0"
            if scenario.get("expire") and verb == "watch" and is_old and request.resource.plural not in expired:
                expired.add(request.resource.plural)
                raise kmock.KubernetesError(status=410, reason="Expired", message="too old resource version: 1 (2)")
            if verb in ("create", "patch"):
                Server.version += 1
                metadata = request.data.setdefault("metadata", {})
                metadata["resourceVersion"] = str(Server.version)
                if verb == "create":
                    metadata["uid"] = str(uuid.uuid4())
                    metadata.setdefault("namespace", request.namespace)
        return await super()._handle(request)


def of_kind(server, plural):
    return [obj.raw for (resource, _, _), obj in server._objects.items() if resource.plural == plural and not obj.deleted]


async def node(server, client):
    """Makes the pod of the first Job that may begin."""
    base = "/api/v1/namespaces/default/pods"
    while True:
        jobs = [job for job in of_kind(server, "jobs") if job["spec"].get("suspend") is False]
        if jobs and not of_kind(server, "pods") and not scenario.get("no_pod"):
            break
        await asyncio.sleep(0.05)
    job = jobs[0]
    name = job["metadata"]["name"] + "-abcde"
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": job["metadata"]["labels"], "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": job["spec"]["template"]["spec"], "status": {"phase": "Pending"},
    }
    await client.post(base, json=pod)

    async def state(phase, status):
        body = {"status": {"phase": phase, **status}}
        await client.patch(f"{base}/{name}", json=body, headers={"content-type": "application/merge-patch+json"})

    def container(state):
        return {"containerStatuses": [{"name": "run", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}]}

    if "status" in scenario:
        await state(scenario["status"].get("phase", "Pending"), scenario["status"])
        return
    work = job["spec"]["template"]["spec"]["containers"][0]
    secret = next(secret for secret in of_kind(server, "secrets"))
    with tempfile.TemporaryDirectory() as home:
        handover = os.path.join(home, "handover")
        with open(handover, "wb") as file:
            file.write(base64.b64decode(secret["data"]["handover"]))
        arguments = [handover if word == "/run/cliq/handover" else word for word in work["args"]]
        env = {"PATH": os.environ["PATH"], "CLIQ_HOME": os.path.join(home, "cliq"), "HOME": home}
        process = await asyncio.create_subprocess_exec(
            os.environ["CLIQ_PROGRAM"], *arguments, cwd=work["workingDir"], env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
        await state("Running", container({"running": {}}))
        output, _ = await process.communicate()
    code = process.returncode
    ended = {"exitCode": code if code >= 0 else 128 - code, "reason": "Completed" if code == 0 else "Error"}
    if code:
        ended["message"] = output.decode()[-2000:]
    await state("Succeeded" if code == 0 else "Failed", container({"terminated": ended}))


async def main():
    async with Server() as server:
        for resource in ("v1/pods", "v1/secrets", "v1/events", "v1/persistentvolumeclaims", "batch/v1/jobs"):
            server.resources[resource] = {}
        runner = aiohttp.web.ServerRunner(aiohttp.web.Server(server))
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        client = aiohttp.ClientSession(f"http://127.0.0.1:{port}")
        if not scenario.get("no_claim"):
            await client.post("/api/v1/namespaces/default/persistentvolumeclaims", json={
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "cliq-data"}, "spec": {"accessModes": ["ReadWriteMany"]}})
        print(port, flush=True)
        playing = asyncio.create_task(node(server, client))
        reader = asyncio.StreamReader()
        await asyncio.get_event_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := (await reader.readline()).decode().split():
            if line[0] == "requests":
                print(json.dumps(asked), flush=True)
            elif line[0] == "objects":
                print(json.dumps(of_kind(server, line[1])), flush=True)
            elif line[0] == "forbid":
                forbidden.add(" ".join(line[1:]))
                print("null", flush=True)
        playing.cancel()


asyncio.run(main())
