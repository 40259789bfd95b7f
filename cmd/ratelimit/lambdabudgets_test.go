package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// put puts a configuration into a bucket.
func put(t *testing.T, client *s3.Client, bucket, key, text string) {
	t.Helper()
	if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)}); err != nil {
		t.Fatal(err)
	}
}

// asked is a table with decisions for one user, and their records.
func asked(t *testing.T, times int) (server *dynamotest.Server, table, shard string, records []json.RawMessage) {
	t.Helper()
	server, table = dynamotest.Start(t), dynamotest.TableName(t)
	service := start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, "100/minute")))
	for range times {
		service.ask(t, "ada")
	}
	service.end(t)
	shard, records = streamOf(t, server, table)
	return server, table, shard, records
}

var allThresholds = []string{"user/ada rpm month 100% of 10", "user/ada rpm month 80% of 10", "user/ada rpm month 95% of 10"}

// The function reads the fleet's file from S3, and has called the webhook when a call ends, also where its
// receiver fails at first. It needs no more than the role of the stack.
func testLambdaBudgets(t *testing.T, program string) {
	t.Helper()
	bucket, receiver := newBucket(t, startMoto(t), "fleet"), newAlarms(t, 2)
	server, table, shard, records := asked(t, 12)
	const place = "s3://fleet/ratelimit.yaml"
	put(t, bucket, "fleet", "ratelimit.yaml", receiver.config(t, onTable(server.URL, table, "100/minute"), "100/minute")+"\nreservation: {keys: [{file: of-the-replicas.key}]}\n")
	role := aggregatorRole(t, table, place)
	variables := map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": dynamotest.NewProxy(t, server.URL, role.guard.Plan).URL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": server.URL,
		"AWS_ENDPOINT_URL_S3": *bucket.Options().BaseEndpoint, "RATELIMIT_TABLE": table, "RATELIMIT_CONFIG": place,
	}
	function := startLambda(t, program, variables)
	for range 2 {
		if failed := function.failures(t, shard, records); len(failed) != 0 {
			t.Errorf("the function reports %q", failed)
		}
		receiver.wants(t, "when a call has ended", allThresholds...)
	}
	role.wantAllowed(t, "DescribeTable", "GetItem", "UpdateItem", "Query")
	for _, want := range []string{`"BudgetEvents":3,"WebhookSent":3,"WebhookFailures":2,"WebhookDropped":0,"ConfigurationFailures":0`, `"BudgetEvents":0,`} {
		eventually(t, want, func() bool { return strings.Contains(function.out.String(), want) })
	}
	if log := function.log.String(); strings.Contains(log, receiver.URL) || strings.Contains(log, "MDEyMzQ1") {
		t.Errorf("the log has a secret:\n%s", log)
	}
	for config, says := range map[string]string{
		"s3://fleet/none.yaml":     "s3://fleet/none.yaml",
		"s3://Fleet":               "s3://bucket/ratelimit.yaml",
		"/var/task/ratelimit.yaml": "/var/task/ratelimit.yaml: does not exist",
	} {
		variables["RATELIMIT_CONFIG"] = config
		failing := startLambda(t, program, variables)
		eventually(t, "the reason in the log", func() bool { return strings.Contains(failing.log.String(), says) })
	}
}

// A function without a configuration counts, and reports no budgets. A process that reads the same records
// then reports them: the writes that it repeats show the snapshots.
func testLambdaBeside(t *testing.T, program string) {
	t.Helper()
	receiver := newAlarms(t, 0)
	server, table, shard, records := asked(t, 12)
	function := startLambda(t, program, map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": server.URL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": server.URL, "RATELIMIT_TABLE": table,
	})
	if failed := function.failures(t, shard, records); len(failed) != 0 {
		t.Errorf("the function reports %q", failed)
	}
	if out := function.out.String(); strings.Contains(out, "BudgetEvents") {
		t.Errorf("metrics of budgets without a configuration: %s", out)
	}
	receiver.wants(t, "of the function")
	file := programtest.WriteFile(t, "aggregate.yaml", receiver.config(t, onTable(server.URL, table, "100/minute"), "100/minute"))
	a := aggregate(t, file)
	a.told(t, 3)
	a.end(t)
	receiver.wants(t, "of the process", allThresholds...)
}

// A receiver that hangs, and then fails, holds up no usage. It has each event in the end.
func TestBudgetsWhileTheReceiverHangs(t *testing.T) {
	receiver := newAlarms(t, 1) // fails after it has hung
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		receiver.ServeHTTP(w, r)
	}))
	t.Cleanup(hanging.Close)
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	file := strings.ReplaceAll(receiver.config(t, onTable(server.URL, table, "100/minute"), "100/minute"), receiver.URL, hanging.URL)
	service := start(t, "--config", programtest.WriteFile(t, "c.yaml", file))
	a := aggregate(t, programtest.WriteFile(t, "a.yaml", file))
	counts := func(n string) {
		t.Helper()
		eventually(t, n+" requests in the usage", func() bool {
			code, list, _ := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t))
			return code == 0 && strings.Contains(list, ","+n+",")
		})
	}
	for range 10 {
		service.ask(t, "ada")
	}
	a.told(t, 3)
	service.ask(t, "ada")
	counts("11") // while the first call hangs
	receiver.wants(t, "while the receiver hangs")
	close(release)
	a.end(t)
	receiver.wants(t, "at the end", allThresholds...)
}

// A configuration in S3 that has changed is in force within a minute. A bad one, or none, leaves the
// last good one in force.
func TestBudgetsAreReadAgain(t *testing.T) {
	bucket := newBucket(t, startMoto(t), "fleet")
	const one, two = "limits: {system: {rpm: {rate: 1/day, budget: {day: 10}}}}", "limits: {system: {rpm: {rate: 1/day, budget: {day: 20, month: 90}}}}"
	put(t, bucket, "fleet", "c.yaml", one)
	source, err := awscmd.OpenBudgetSource(t.Context(), "s3://fleet/c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	watch, err := awscmd.OpenBudgetWatch(t.Context(), awscmd.BudgetWatchConfig{
		Source: source, Standings: noStandings{}, Now: func() time.Time { return now }, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	for step, of := range []struct {
		text     string // "" = no object
		after    time.Duration
		failures int64
		says     string
	}{
		{two, 59 * time.Second, 0, `"budgets":1`},
		{two, time.Second, 0, `"budgets":2`},
		{two, time.Minute, 0, ""},
		{"budgets: {webhook: {url: hush}}", time.Minute, 1, "the last good one stay"},
		{"", time.Minute, 1, "there is no such object"},
		{one, time.Minute, 0, `"budgets":1`},
		{two, -time.Hour, 0, `"budgets":2`},
	} {
		if key, in := "c.yaml", "fleet"; of.text != "" {
			put(t, bucket, in, key, of.text)
		} else if _, err := bucket.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &in, Key: &key}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(of.after)
		watch.Begin(t.Context())
		if told := watch.End(t.Context()); told != (awscmd.ToldEvents{ConfigurationFailures: of.failures}) {
			t.Errorf("step %d: %+v", step, told)
		}
		if text := log.String(); of.says == "" && text != "" || !strings.Contains(text, of.says) || strings.Contains(text, "hush") {
			t.Errorf("step %d: the log has not %q:\n%s", step, of.says, text)
		}
		log.Reset()
	}
}

// noStandings are snapshots that are not used.
type noStandings struct{ aggregator.Standings }
