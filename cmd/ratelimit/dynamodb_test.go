package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// onTable returns the text of a configuration on a table of DynamoDB Local, which
// may take long on a busy machine.
func onTable(endpoint, table, rate string) string {
	return fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}\ndecision: {timeout: 10s, on_unavailable: deny}\n", table, endpoint) + withRate(rate)
}

// A table that answers slowly is waited for as long as decision.timeout says, and is not
// asked again meanwhile.
func TestASlowTable(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	proxy := dynamotest.NewProxy(t, server.URL, nil)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(proxy.URL, table, "3/hour")))
	proxy.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
		if strings.HasSuffix(c.Op, "Item") {
			return dynamofake.Fault{Latency: 400 * time.Millisecond}
		}
		return dynamofake.Fault{}
	})
	for i, want := range []int{200, 200, 200, 429} {
		if code, answer := r.ask(t, "ada"); code != want {
			t.Errorf("request %d: %d, want %d: %+v", i, code, want, answer)
		}
	}
	if _, text := r.get(t, "/metrics"); !strings.Contains(text, "ratelimit_dynamodb_resent_writes_total 0") {
		t.Error("writes were sent again")
	}
}

// rewrite replaces a file at once, as an editor or Kubernetes does.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(file), "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

// Two services on one table of DynamoDB Local: one limit, also when it is changed
// in their file, and in the table.
func TestServicesOnOneTable(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	file := programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, "3/hour"))
	a, b := start(t, "--config", file), start(t, "--config", file)

	for i, step := range []struct {
		of   *running
		code int
	}{{a, 200}, {b, 200}, {a, 200}, {b, 429}, {a, 429}} {
		if code, answer := step.of.ask(t, "ada"); code != step.code {
			t.Errorf("request %d: %d, want %d: %+v", i, code, step.code, answer)
		}
	}
	for _, r := range []*running{a, b} {
		if code, body := r.get(t, "/readyz"); code != http.StatusOK {
			t.Errorf("/readyz: %d %s", code, body)
		}
		_, text := r.get(t, "/metrics")
		if !strings.Contains(text, "ratelimit_dynamodb_clock_trusted 1") || strings.Contains(text, "ratelimit_dynamodb_writes_total 0") {
			t.Error("/metrics does not report on the table")
		}
	}

	a.ask(t, "eve")
	rewrite(t, file, onTable(server.URL, table, "2/hour"))
	obeyed(t, "2 an hour by the file", 2, a, b)

	one, err := limiter.NewLimits(limiter.PerHour("rpm", 1), limiter.PerHour("all", plenty))
	if err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(server.Client(t), dynamo.Config{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.SystemLimitsRef(), limiter.Record{Limits: one}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(t.Context()); err != nil {
		t.Error(err)
	}
	obeyed(t, "1 an hour by the table", 1, a, b)

	for _, r := range []*running{a, b} {
		r.stop(command.ErrInterrupted)
		if code := r.wait(t); code != command.ExitOK {
			t.Errorf("exit code %d, log:\n%s", code, r.log)
		}
	}
}

// obeyed waits until all services go by a limit, at most 5 seconds after now.
func obeyed(t *testing.T, what string, want int, services ...*running) {
	t.Helper()
	began := time.Now()
	for _, r := range services {
		eventually(t, what, func() bool {
			_, answer := r.ask(t, "eve")
			return answer.Statuses[0].CurrentLimit.RequestsPerUnit == want
		})
	}
	if took := time.Since(began); took > told {
		t.Errorf("%s: obeyed after %v, want at most %v", what, took, told)
	}
}

func TestServeWithoutItsTable(t *testing.T) {
	server := dynamotest.Start(t)
	code, _, stderr := output(t, "serve", "--demo", "--store", "dynamodb", "--table", "nowhere", "--endpoint", server.URL)
	if code != command.ExitFailure || !strings.Contains(stderr, "ratelimit: store.dynamodb: table nowhere does not exist") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
}

func TestServeWithoutDynamoDB(t *testing.T) {
	log := new(proctest.LogBuffer)
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--demo", "--store", "dynamodb", "--endpoint", "http://127.0.0.1:1"}, log, log)
	}()
	eventually(t, "a word of why it waits", func() bool { return strings.Contains(log.String(), "msg=\"start delayed\" waiting_for=\"the table\"") })
	cancel(command.ErrInterrupted)
	if got := <-code; got != command.ExitFailure {
		t.Errorf("exit code %d", got)
	}
	for _, want := range []string{"connection refused", "ratelimit: store.dynamodb: interrupted while waiting for the table", "check store.dynamodb.endpoint"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is missing:\n%s", want, log)
		}
	}
}
