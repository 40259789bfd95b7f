package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Commands work on a table without a service. Those that read write nothing to it.
func TestATableWithoutAService(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	t.Chdir(t.TempDir())
	db := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), db, table); err != nil {
		t.Fatal(err)
	}
	items := func() int32 {
		t.Helper()
		out, err := db.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		return out.Count
	}
	on := func(code int, want string, args ...string) {
		t.Helper()
		got, stdout, stderr := output(t, append(args, "--table", table, "--endpoint", server.URL)...)
		if got != code || !strings.Contains(stdout+stderr, want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s%s", args, got, code, want, stdout, stderr)
		}
	}
	empty := items()
	on(1, "no entity a is stored", "get", "entity", "a")
	on(1, "no limits of the system", "get", "limits", "--system", "-n", "nothing")
	on(0, "ID  PARENT", "list", "entities")
	on(0, "administer", "status")
	if n := items(); n != empty {
		t.Errorf("commands that read made %d items", n-empty)
	}
	on(0, "limits of the system created", "set", "limits", "--system", "rpm=5/minute")
	on(0, "2 created, 0 unchanged", "apply", "-f", write(t, "m.yaml", "manifest: m\nlimits: {entities: {a: {limits: {_default_: {rpm: 1/minute}}}}}"))
	on(0, "entity a unchanged", "apply", "-f", write(t, "m.yaml", "manifest: m\nlimits: {entities: {a: {limits: {_default_: {rpm: 1/minute}}}}}"))
	on(0, "\na                 -          false    -\n", "list", "entities")
	on(0, "table:", "list", "audit", "--system")
	on(2, "leave out --server", "list", "entities", "--server", "https://h")
	on(2, `--store is "redis"`, "list", "entities", "--store", "redis")
	if code, _, stderr := output(t, "list", "entities", "--store", "dynamodb"); code != exitUsage || !strings.Contains(stderr, "--table is missing") {
		t.Errorf("no table: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := output(t, "list", "entities", "--table", "nowhere", "--endpoint", server.URL); code != exitFailure || !strings.Contains(stderr, "nowhere") {
		t.Errorf("a table that is not there: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := output(t, "list", "entities", "--table", "limits", "--endpoint", "http://127.0.0.1:1"); code != exitSilence {
		t.Errorf("no DynamoDB: exit code %d, %s", code, stderr)
	}
}
