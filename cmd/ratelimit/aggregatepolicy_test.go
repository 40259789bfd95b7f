package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
)

// An aggregator with its policy reads the stream, writes usage, tells of budgets, and shares the
// shards: it makes no call that is refused.
func TestAggregatePolicyIsEnough(t *testing.T) {
	g, receiver := guardTable(t, "AggregatePolicy", false), newAlarms(t, 0)
	service := start(t, "--config", write(t, "c.yaml", onTable(dynamotest.Start(t).URL, g.name, "100/minute")))
	for range 12 {
		service.ask(t, "ada")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	file := write(t, "aggregate.yaml", receiver.config(t, onTable(g.url, g.name, "100/minute"), "100/minute"))
	log, ended := new(logBuffer), make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"aggregate", "-c", file, "--http-address", "127.0.0.1:0", "--flush", "100ms"}, io.Discard, log)
	}()
	eventually(t, "the thresholds in the log", func() bool { return strings.Count(log.String(), "a budget is used to a threshold") == 3 })
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, log)
	}
	receiver.wants(t, "of the process", allThresholds...)
	if _, list, _ := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t)); !strings.Contains(list, ",12,") {
		t.Errorf("12 requests, and the usage is\n%s", list)
	}
	g.wantAllowed(t, "DescribeTable", "GetItem", "Query", "UpdateItem", "PutItem", "DescribeStream", "GetShardIterator", "GetRecords")
}
