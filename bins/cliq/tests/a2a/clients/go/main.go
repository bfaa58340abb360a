// The official Go SDK as a client: client URL TOKEN
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2aclient"
	"github.com/a2aproject/a2a-go/a2aclient/agentcard"
)

func check(right bool, about ...any) {
	if !right {
		panic(fmt.Sprint(about...))
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func message(team string) *a2a.MessageSendParams {
	data := a2a.DataPart{Data: map[string]any{"team": team}}
	return &a2a.MessageSendParams{Message: a2a.NewMessage(a2a.MessageRoleUser, a2a.TextPart{Text: "Do it"}, data)}
}

func number(event a2a.Event) string {
	switch event := event.(type) {
	case *a2a.TaskStatusUpdateEvent:
		return event.Metadata["eventId"].(string)
	case *a2a.TaskArtifactUpdateEvent:
		return event.Metadata["eventId"].(string)
	}
	return ""
}

func main() {
	url, token := os.Args[1], os.Args[2]
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var lock sync.Mutex
	var received []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var task a2a.Task
		check(json.NewDecoder(r.Body).Decode(&task) == nil && r.Header.Get("X-A2A-Notification-Token") == "hush")
		lock.Lock()
		received = append(received, string(task.Status.State))
		lock.Unlock()
	}))

	// Discovery
	card := must(agentcard.DefaultResolver.Resolve(ctx, url))
	check(len(card.Skills) > 1 && card.Capabilities.Streaming, card)
	store := a2aclient.NewInMemoryCredentialsStore()
	store.Set("s", "bearer", a2aclient.AuthCredential(token))
	ctx = a2aclient.WithSessionID(ctx, "s")
	client := must(a2aclient.NewFromCard(ctx, card, a2aclient.WithInterceptors(&a2aclient.AuthInterceptor{Service: store})))

	start := func(team string) *a2a.Task {
		return must(client.SendMessage(ctx, message(team))).(*a2a.Task)
	}

	// Send
	task := start("@local/steps")
	for task.Status.State != a2a.TaskStateCompleted {
		check(!task.Status.State.Terminal(), task.Status.State)
		time.Sleep(50 * time.Millisecond)
		task = must(client.GetTask(ctx, &a2a.TaskQueryParams{ID: task.ID}))
	}
	check(len(task.Artifacts) == 2 && task.Artifacts[1].Name == "pipeline_result", task.Artifacts)

	// Stream
	var numbers []string
	for event, err := range client.SendStreamingMessage(ctx, message("@local/steps")) {
		check(err == nil, err)
		if id := number(event); id != "" {
			numbers = append(numbers, id)
		}
	}
	check(len(numbers) > 10, numbers)

	// Resubscribe
	slow := start("@local/slow")
	for event, err := range client.ResubscribeToTask(ctx, &a2a.TaskIDParams{ID: slow.ID}) {
		check(err == nil && event != nil, err)
		break
	}

	// Push notifications
	params := &a2a.TaskPushConfig{TaskID: slow.ID, Config: a2a.PushConfig{ID: "mine", URL: receiver.URL, Token: "hush"}}
	check(must(client.SetTaskPushConfig(ctx, params)).Config.URL == receiver.URL)
	check(must(client.GetTaskPushConfig(ctx, &a2a.GetTaskPushConfigParams{TaskID: slow.ID, ConfigID: "mine"})).Config.Token == "hush")
	check(len(must(client.ListTaskPushConfig(ctx, &a2a.ListTaskPushConfigParams{TaskID: slow.ID}))) == 1)

	// Cancel
	cancelled := must(client.CancelTask(ctx, &a2a.TaskIDParams{ID: slow.ID}))
	check(cancelled.Status.State == a2a.TaskStateCanceled, cancelled.Status.State)
	_, err := client.CancelTask(ctx, &a2a.TaskIDParams{ID: slow.ID})
	check(errors.Is(err, a2a.ErrTaskNotCancelable), err)
	_, err = client.GetTask(ctx, &a2a.TaskQueryParams{ID: "no-such-task"})
	check(errors.Is(err, a2a.ErrTaskNotFound), err)
	for n := 0; ; n++ {
		lock.Lock()
		all := strings.Join(received, " ")
		lock.Unlock()
		if strings.HasSuffix(all, "canceled") {
			break
		}
		check(n < 200, all)
		time.Sleep(50 * time.Millisecond)
	}

	// Conversation: a message to a task that works, a comment and a decision of a task that waits
	say := func(task *a2a.Task, part a2a.Part) *a2a.Task {
		params := &a2a.MessageSendParams{Message: a2a.NewMessageForTask(a2a.MessageRoleUser, task, part)}
		return must(client.SendMessage(ctx, params)).(*a2a.Task)
	}
	slow = start("@local/slow")
	steered := say(slow, a2a.TextPart{Text: "Use short words."})
	last := steered.History[len(steered.History)-1].Parts[0].(a2a.TextPart)
	check(steered.ID == slow.ID && last.Text == "Use short words.", steered)
	must(client.CancelTask(ctx, &a2a.TaskIDParams{ID: slow.ID}))
	asked := start("@local/ask")
	for asked.Status.State != a2a.TaskStateInputRequired {
		check(!asked.Status.State.Terminal(), asked.Status.State)
		time.Sleep(50 * time.Millisecond)
		asked = must(client.GetTask(ctx, &a2a.TaskQueryParams{ID: asked.ID}))
	}
	check(say(asked, a2a.TextPart{Text: "Looks good so far."}).Status.State == a2a.TaskStateInputRequired)
	say(asked, a2a.DataPart{Data: map[string]any{"verdict": "approve"}})
	for asked.Status.State != a2a.TaskStateCompleted {
		check(!asked.Status.State.Terminal(), asked.Status.State)
		time.Sleep(50 * time.Millisecond)
		asked = must(client.GetTask(ctx, &a2a.TaskQueryParams{ID: asked.ID}))
	}
	check(client.DeleteTaskPushConfig(ctx, &a2a.DeleteTaskPushConfigParams{TaskID: slow.ID, ConfigID: "mine"}) == nil)
	fmt.Println("ok")
}
