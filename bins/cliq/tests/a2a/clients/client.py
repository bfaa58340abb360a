"""The official Python SDK as a client: python client.py URL TOKEN BINDING VERSION"""

import asyncio
import json
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types.a2a_pb2 import (
    AuthenticationInfo, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest, ListTasksRequest,
    Message, Part, Role, SendMessageRequest, SubscribeToTaskRequest, TaskPushNotificationConfig, TaskState,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value

URL, TOKEN, BINDING, VERSION = sys.argv[1:5]
RECEIVED = []


class Receiver(BaseHTTPRequestHandler):
    """What push notifications are posted to."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        RECEIVED.append((self.headers["x-a2a-notification-token"], self.headers["authorization"], body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def request(team, text="Do it", **kwargs):
    data = ParseDict({"team": team}, Value())
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text), Part(data=data)], **kwargs)
    return SendMessageRequest(message=message)


def update_of(event):
    """The number of an update, and its text."""
    item = event.status_update if event.HasField("status_update") else event.artifact_update
    return MessageToDict(item.metadata)["eventId"]


async def main():
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        # Discovery
        card = await A2ACardResolver(http, URL).get_agent_card()
        assert "@local/steps" in [skill.id for skill in card.skills], card
        assert card.capabilities.streaming and card.capabilities.push_notifications
        wanted = [i for i in card.supported_interfaces if (i.protocol_binding, i.protocol_version) == (BINDING, VERSION)]
        assert wanted, card.supported_interfaces
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(wanted)

        def client(**options):
            return ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=[BINDING], **options)).create(card)

        poll, stream = client(streaming=False, polling=True), client()

        async def task_of(send):
            [first] = [event async for event in poll.send_message(send)]
            return first.task

        async def ended(id):
            for _ in range(600):
                task = await poll.get_task(GetTaskRequest(id=id))
                if task.status.state >= TaskState.TASK_STATE_COMPLETED and task.status.state <= TaskState.TASK_STATE_CANCELED:
                    return task
                await asyncio.sleep(0.05)
            raise AssertionError("the task does not end")

        # Send
        task = await task_of(request("@local/steps", context_id="conversation-1"))
        assert task.status.state in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING), task
        task = await ended(task.id)
        assert task.status.state == TaskState.TASK_STATE_COMPLETED, task
        names = [artifact.name for artifact in task.artifacts]
        assert names == ["report.md", "pipeline_result"], names
        result = MessageToDict(task.artifacts[1].parts[0].data)
        assert result["status"] == "completed" and len(result["phases"]) == 3, result
        assert task.artifacts[0].parts[0].text == "# Done\n", task.artifacts[0]
        assert task.context_id == "conversation-1" and task.history[0].parts[0].text == "Do it"
        assert len((await poll.get_task(GetTaskRequest(id=task.id, history_length=0))).history) == 0

        # Stream
        events = [event async for event in stream.send_message(request("@local/steps"))]
        assert events[0].HasField("task")
        assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events[-1]
        numbers = [update_of(event) for event in events[1:]]
        assert len(numbers) == len(set(numbers)) > 10, numbers
        texts = [e.status_update.status.message.parts[0].text for e in events[1:] if e.HasField("status_update")]
        assert texts[0] == "Pipeline started — team: @local/steps" and "Running: p1" in texts and "Phase completed: p2" in texts

        # Resubscribe: a client that drops goes on from the last update that it has.
        task = await task_of(request("@local/steps"))
        seen, last = [], "0.0"
        while True:
            context = ClientCallContext(service_parameters={"Last-Event-ID": last})
            count, over = 0, False
            async for event in stream.subscribe(SubscribeToTaskRequest(id=task.id), context=context):
                if event.HasField("task"):
                    continue
                seen.append(update_of(event))
                last, count = seen[-1], count + 1
                over = event.status_update.status.state == TaskState.TASK_STATE_COMPLETED
                if count == 3 or over:
                    break
            if over:
                break
        assert seen == numbers, (seen, numbers)

        # Push notifications
        slow = await task_of(request("@local/slow"))
        address = f"http://127.0.0.1:{receiver.server_port}/hook"
        config = TaskPushNotificationConfig(
            task_id=slow.id, id="mine", url=address, token="hush",
            authentication=AuthenticationInfo(scheme="Bearer", credentials="secret"))
        made = await poll.create_task_push_notification_config(config)
        assert made.url == address and made.id == "mine", made
        got = await poll.get_task_push_notification_config(GetTaskPushNotificationConfigRequest(task_id=slow.id, id="mine"))
        assert got.url == address and got.authentication.scheme == "Bearer", got
        listed = await poll.list_task_push_notification_configs(ListTaskPushNotificationConfigsRequest(task_id=slow.id))
        assert [c.id for c in listed.configs] == ["mine"], listed
        config.id = "other"
        await poll.create_task_push_notification_config(config)
        await poll.delete_task_push_notification_config(DeleteTaskPushNotificationConfigRequest(task_id=slow.id, id="other"))

        # Cancel
        cancelled = await poll.cancel_task(CancelTaskRequest(id=slow.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED, cancelled
        try:
            await poll.cancel_task(CancelTaskRequest(id=slow.id))
            raise AssertionError("cancelled twice")
        except TaskNotCancelableError:
            pass
        try:
            await poll.get_task(GetTaskRequest(id="no-such-task"))
            raise AssertionError("found")
        except TaskNotFoundError:
            pass
        for _ in range(200):
            # The artifact comes before the last state.
            if RECEIVED and '"state": "' in (text := json.dumps(RECEIVED[-1][2])) and text.lower().count('canceled"'):
                break
            await asyncio.sleep(0.05)
        assert RECEIVED and all(r[:2] == ("hush", "Bearer secret") for r in RECEIVED), RECEIVED
        last = RECEIVED[-1][2]
        state = last["statusUpdate"]["status"]["state"] if VERSION == "1.0" else last["status"]["state"]
        assert state == ("TASK_STATE_CANCELED" if VERSION == "1.0" else "canceled"), last

        # Conversation: a message to a task that works, a comment and a decision of a task that waits
        def say(task, *parts):
            return SendMessageRequest(message=Message(
                message_id=str(uuid.uuid4()), role=Role.ROLE_USER, task_id=task.id, context_id=task.context_id, parts=parts))

        steered = await task_of(request("@local/slow"))
        task = await task_of(say(steered, Part(text="Use short words.")))
        assert task.id == steered.id and task.history[-1].parts[0].text == "Use short words.", task
        await poll.cancel_task(CancelTaskRequest(id=steered.id))
        asked = await task_of(request("@local/ask"))
        for _ in range(600):
            asked = await poll.get_task(GetTaskRequest(id=asked.id))
            if asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
                break
            await asyncio.sleep(0.05)
        commented = await task_of(say(asked, Part(text="Looks good so far.")))
        assert commented.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, commented
        await task_of(say(asked, Part(data=ParseDict({"verdict": "approve"}, Value()))))
        assert (await ended(asked.id)).status.state == TaskState.TASK_STATE_COMPLETED

        # List. 0.3 has no such method.
        if VERSION == "1.0":
            page = await poll.list_tasks(ListTasksRequest(page_size=2))
            assert len(page.tasks) == 2 and page.total_size >= 4 and page.next_page_token, page
            rest = await poll.list_tasks(ListTasksRequest(page_size=100, page_token=page.next_page_token))
            ids = [task.id for task in page.tasks] + [task.id for task in rest.tasks]
            assert len(ids) == len(set(ids)) == page.total_size, ids
            mine = await poll.list_tasks(ListTasksRequest(context_id="conversation-1", status=TaskState.TASK_STATE_COMPLETED))
            assert mine.total_size >= 1 and all(t.context_id == "conversation-1" for t in mine.tasks)

        # The extended card
        extended = await poll.get_extended_agent_card(GetExtendedAgentCardRequest())
        assert extended.name == card.name
        print("ok")


asyncio.run(main())
