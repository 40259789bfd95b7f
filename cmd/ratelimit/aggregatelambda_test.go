package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/smithy-go"

	"github.com/ratelimit/ratelimit/pkg/stack"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/iamtest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// poisoned returns records with two among them that cannot be counted: a bucket's with a counter
// that is no number, and one that is in no form.
func poisoned(t *testing.T, records []json.RawMessage) []json.RawMessage {
	t.Helper()
	for i, r := range records {
		if !strings.Contains(string(r), `"#STATE"`) {
			continue
		}
		bad := strings.NewReplacer(`/BUCKET#user%2Fada#`, `/BUCKET#user%2Fpoison#`, `_tc":{"N":"`, `_tc":{"N":"x`).Replace(string(r))
		if bad == string(r) {
			t.Fatalf("the record has no counter: %s", r)
		}
		return slices.Insert(slices.Clone(records), i, json.RawMessage(bad), json.RawMessage(`{"dynamodb":{"SequenceNumber":"7","Keys":"none"}}`))
	}
	t.Fatal("no record of a bucket")
	return nil
}

// firstOfBuckets returns the sequence number of the first record of a bucket.
func firstOfBuckets(t *testing.T, records []json.RawMessage) string {
	t.Helper()
	for _, r := range records {
		var of events.DynamoDBEventRecord
		if err := json.Unmarshal(r, &of); err != nil {
			t.Fatal(err)
		}
		if of.Change.Keys["SK"].String() == "#STATE" {
			return of.Change.SequenceNumber
		}
	}
	t.Fatal("no record of a bucket")
	return ""
}

// aggregatorRole returns the permissions that the role of a stack's function has on its table. config is that of
// the function; "" = none.
func aggregatorRole(t *testing.T, table, config string) *guarded {
	t.Helper()
	template, err := stack.Render(stack.Options{Name: table, Aggregator: stack.Aggregator{On: true, Config: config}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := template.JSON()
	if err != nil {
		t.Fatal(err)
	}
	of := iamtest.Table{Name: table, ARN: "arn:aws:dynamodb:eu-central-1:123456789012:table/" + table, Key: "PK"}
	policy, err := iamtest.FromTemplate(text, "AggregatorRole", map[string]string{
		"Table.Arn": of.ARN, "Table.StreamArn": of.ARN + "/stream/x", "AggregatorLog.Arn": "log", "AggregatorDeadLetters.Arn": "queue", "AuditArchive.Arn": "bucket", "AWS::Partition": "aws",
	})
	if err != nil {
		t.Fatal(err)
	}
	return &guarded{name: table, guard: iamtest.NewGuard(of, policy)}
}

// The function counts the records of a table's stream. A record that cannot be counted stops no
// other, and a repeated record counts once. After a failed write the function names the record
// from which it must be called again. The role of the stack suffices.
func testLambdaCounts(t *testing.T, program string) {
	t.Helper()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	service := start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, "100/minute")))
	role := aggregatorRole(t, table, "")
	proxy := dynamotest.NewProxy(t, server.URL, role.guard.Plan)
	for range 7 {
		service.ask(t, "ada")
	}
	usage := func() string {
		_, list, _ := output(t, "list", "usage", "--window", "hour", "-o", "csv", "--server", service.adminURL(t))
		return list
	}
	function := startLambda(t, program, map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": proxy.URL, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": server.URL,
		"RATELIMIT_TABLE": table, "RATELIMIT_WINDOWS": "hour",
	})
	var shard string
	var records []json.RawMessage
	eventually(t, "the decisions in the stream", func() bool {
		shard, records = streamOf(t, server, table)
		return strings.Contains(string(records[len(records)-1]), `_tc":{"N":"7000"}`)
	})

	if answer := function.call(t, map[string]any{"Records": records}); !answer.failed || !strings.Contains(answer.body, "TumblingWindowInSeconds") {
		t.Errorf("a call without a shard: %+v", answer)
	}
	for _, fault := range []dynamofake.Fault{
		{Kind: dynamofake.ServerError},
		{Kind: dynamofake.Fail, Err: &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no permission yet"}},
	} {
		proxy.SetPlan(func(c dynamofake.Call) dynamofake.Fault {
			if body, _ := c.Input.([]byte); c.Op == "UpdateItem" && strings.Contains(string(body), "#USAGE#") {
				return fault
			}
			return role.guard.Plan(c)
		})
		if failed := function.failures(t, shard, records); !slices.Equal(failed, []string{firstOfBuckets(t, records)}) {
			t.Errorf("writes end with %v, and the function reports %q, want the first record of a bucket", fault, failed)
		}
	}
	proxy.SetPlan(role.guard.Plan)
	if list := usage(); strings.Contains(list, "ada") {
		t.Errorf("usage that is not written: %s", list)
	}
	for range 2 {
		if failed := function.failures(t, shard, poisoned(t, records)); len(failed) != 0 {
			t.Errorf("the function reports %q", failed)
		}
		if list := usage(); !strings.Contains(list, ",7,") || strings.Contains(list, "poison") {
			t.Errorf("7 requests, and the usage is\n%s", list)
		}
	}
	role.wantAllowed(t, "DescribeTable", "GetItem", "UpdateItem", "PutItem")
	eventually(t, "the function in the status of the service", func() bool {
		_, status, _ := output(t, "status", "--server", service.adminURL(t))
		return strings.Contains(status, "\naggregator:     up to date")
	})
	if failed := function.failures(t, shard, nil); len(failed) != 0 {
		t.Errorf("at the end of a window: %q", failed)
	}
	for _, want := range []string{`/BUCKET#user%2Fpoison#api#0\" SK=\"#STATE\"","shard":"` + shard, `"sequence":"7"`} {
		if log := function.log.String(); strings.Count(log, want) != 2 {
			t.Errorf("the log has not two letters with %s:\n%s", want, log)
		}
	}
	for _, want := range []string{`"DeadLetters":2`, `"RepeatedRecords":`, `"Table":"` + table, `"Failures":1`, `"DeadLetters":0,"ArchivedEvents":0,"Splits":0,"Failures":1`} {
		if metrics := function.out.String(); !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics\n%s", want, metrics)
		}
	}
}

func TestLambdaRefuses(t *testing.T) {
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	file := programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute)
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no table":             {[]string{"--lambda"}, "RATELIMIT_TABLE"},
		"no name of a table":   {[]string{"--lambda", "--table", "x"}, "store.dynamodb.table"},
		"rules":                {[]string{"--lambda", "--table", "limits", "--rules", file}, "reads no rules"},
		"an address":           {[]string{"--lambda", "--table", "limits", "--http-address", "127.0.0.1:0"}, "serves no address"},
		"no such window":       {[]string{"--lambda", "--table", "limits", "--windows", "hourly"}, "hour, day and month"},
		"a table with no mode": {[]string{"--table", "limits"}, "--table is of --lambda"},
	} {
		if code, _, stderr := output(t, append([]string{"aggregate"}, tt.args...)...); code != 2 || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: exit code %d, %q; want 2 and %q", name, code, stderr, tt.says)
		}
	}
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "")
	if code, _, stderr := output(t, "aggregate", "--lambda", "--table", "limits"); code != 2 || !strings.Contains(stderr, "names no runtime") {
		t.Errorf("without a runtime: exit code %d, %q", code, stderr)
	}
}
