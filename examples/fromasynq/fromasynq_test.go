package fromasynq_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/dueq-io/dueq"
	"github.com/dueq-io/dueq/examples/fromasynq"
	"github.com/dueq-io/dueq/examples/internal/scratch"
)

func TestMove(t *testing.T) {
	t.Parallel()
	queue, rdb, closeAll, err := scratch.Open(dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	client, inspector := asynq.NewClientFromRedisClient(rdb), asynq.NewInspectorFromRedisClient(rdb)
	due := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 600 {
		task := asynq.NewTaskWithHeaders("order:close", fmt.Append(nil, "order ", i), map[string]string{"n": fmt.Sprint(i)})
		_, err := client.Enqueue(task, asynq.TaskID(fmt.Sprint("order ", i)), asynq.ProcessAt(due), asynq.MaxRetry(4))
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Enqueue(asynq.NewTask("mail", []byte("now")), asynq.TaskID("mail")); err != nil {
		t.Fatal(err)
	}
	if err := inspector.PauseQueue("default"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{601, 0} {
		if n, err := fromasynq.Move(t.Context(), inspector, "default", queue); err != nil || n != want {
			t.Fatalf("moved %d, want %d: %v", n, want, err)
		}
	}
	if info, err := inspector.GetQueueInfo("default"); err != nil || info.Size != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	info, err := queue.Get(t.Context(), "order:close", "order 599")
	if err != nil {
		t.Fatal(err)
	}
	if string(info.Body) != "order 599" || !info.Due.Equal(due) || info.MaxAttempts != 5 || info.Metadata["n"] != "599" {
		t.Errorf("%+v, want due at %v", info, due)
	}
	stats, err := queue.Stats(t.Context(), "order:close")
	if err != nil || stats.Scheduled != 600 {
		t.Errorf("%d scheduled, %v", stats.Scheduled, err)
	}
	if info, err := queue.Get(t.Context(), "mail", "mail"); err != nil || info.EffectTime.After(due) {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestSamePublish(t *testing.T) {
	t.Parallel()
	queue, rdb, closeAll, err := scratch.Open(dueq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	if err := fromasynq.EnqueueBefore(asynq.NewClientFromRedisClient(rdb), "17"); err != nil {
		t.Fatal(err)
	}
	if err := fromasynq.PublishAfter(t.Context(), queue, "17"); err != nil {
		t.Fatal(err)
	}
	task, err := asynq.NewInspectorFromRedisClient(rdb).GetTaskInfo("default", "17")
	if err != nil {
		t.Fatal(err)
	}
	event, err := queue.Get(t.Context(), task.Type, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if task.MaxRetry+1 != event.MaxAttempts || string(task.Payload) != string(event.Body) {
		t.Errorf("%+v and %+v differ", task, event)
	}
}

// A periodic event goes on although a run fails, and is there once however many
// processes start it.
func TestPeriodic(t *testing.T) {
	t.Parallel()
	queue, _, closeAll, err := scratch.Open(dueq.Options{Backoff: func(int, error) time.Duration { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closeAll() })
	runs := make(chan int)
	run := 0
	err = queue.Subscribe("report", fromasynq.Report(queue, func(context.Context) error {
		run++
		runs <- run
		if run == 1 {
			return errors.New("disk full")
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.PublishEvent(t.Context(), "report", nil, time.Now(), dueq.WithID("periodic")); err != nil {
		t.Fatal(err)
	}
	<-runs
	<-runs
	for range 3 { // processes start
		if err := fromasynq.Every(t.Context(), queue, "report", time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		info, err := queue.Get(t.Context(), "report", "periodic")
		if err != nil {
			t.Fatal(err)
		}
		if info.State == dueq.StateScheduled {
			if at := info.Due; !at.Equal(at.Truncate(time.Hour)) || info.Attempts != 0 {
				t.Errorf("next at %v, %d attempts used up", at, info.Attempts)
			}
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatal(info.State)
		case <-poll.C:
		}
	}
	if stats, err := queue.Stats(t.Context(), "report"); err != nil || stats.Scheduled != 1 || stats.Dead != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
}
