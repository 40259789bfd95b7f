package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// An aggregator with its policy reads the stream, writes usage, reports budgets, and shares the
// shards: it makes no call that is refused.
func TestAggregatePolicyIsEnough(t *testing.T) {
	g, receiver := guardTable(t, "AggregatePolicy", false), newAlarms(t, 0)
	service := start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(dynamotest.Start(t).URL, g.name, "100/minute")))
	for range 12 {
		service.ask(t, "ada")
	}
	file := programtest.WriteFile(t, "aggregate.yaml", receiver.config(t, onTable(g.url, g.name, "100/minute"), "100/minute"))
	a := aggregate(t, file)
	a.told(t, 3)
	a.end(t)
	receiver.wants(t, "of the process", allThresholds...)
	if _, list, _ := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t)); !strings.Contains(list, ",12,") {
		t.Errorf("12 requests, and the usage is\n%s", list)
	}
	g.wantAllowed(t, "DescribeTable", "GetItem", "Query", "UpdateItem", "PutItem", "DescribeStream", "GetShardIterator", "GetRecords")
}
