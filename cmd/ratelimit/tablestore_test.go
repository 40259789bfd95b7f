package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
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
	on(1, `namespace "tenant" was never in use`, "get", "namespace", "tenant")
	on(1, `namespace "tenant" was never in use`, "purge", "namespace", "tenant", "--yes")
	on(0, "namespace tenant created (dry run: nothing was changed)", "create", "namespace", "tenant", "--dry-run")
	on(0, "ID  NAME  CREATED", "list", "orphans")
	if n := items(); n != empty {
		t.Errorf("commands that read made %d items", n-empty)
	}
	on(0, "limits of the system created", "set", "limits", "--system", "rpm=5/minute")
	on(0, "2 created, 0 unchanged", "apply", "-f", programtest.WriteFile(t, "m.yaml", "manifest: m\nlimits: {entities: {a: {limits: {_default_: {rpm: 1/minute}}}}}"))
	on(0, "entity a unchanged", "apply", "-f", programtest.WriteFile(t, "m.yaml", "manifest: m\nlimits: {entities: {a: {limits: {_default_: {rpm: 1/minute}}}}}"))
	on(0, "\na   -       false    -     -\n", "list", "entities")
	on(0, "table:", "list", "audit", "--system")
	manageNamespaces(t, on)
	purgeAnOrphan(t, db, table, on)
	on(2, "leave out --server", "list", "entities", "--server", "https://h")
	on(2, `--store is "redis"`, "list", "entities", "--store", "redis")
	if code, _, stderr := output(t, "list", "entities", "--store", "dynamodb"); code != command.ExitUsage || !strings.Contains(stderr, "--table is missing") {
		t.Errorf("no table: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := output(t, "list", "entities", "--table", "nowhere", "--endpoint", server.URL); code != command.ExitFailure || !strings.Contains(stderr, "nowhere") {
		t.Errorf("a table that is not there: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := output(t, "list", "entities", "--table", "limits", "--endpoint", "http://127.0.0.1:1"); code != command.ExitSilence {
		t.Errorf("no DynamoDB: exit code %d, %s", code, stderr)
	}
}

// manageNamespaces moves a namespace of a table through its states. Purges wait for leases, so
// this one is refused.
func manageNamespaces(t *testing.T, on func(code int, want string, args ...string)) {
	t.Helper()
	on(0, "namespace tenant created", "create", "namespace", "tenant")
	on(0, "namespace tenant exists already", "create", "namespace", "tenant")
	on(0, "entity a created", "set", "entity", "a", "-n", "tenant")
	on(1, "the namespace is active: delete it first", "purge", "namespace", "tenant", "--yes")
	on(0, "namespace tenant deleted", "delete", "namespace", "tenant", "--yes")
	on(1, "the namespace is deleted: recover it, or purge it", "set", "entity", "a", "-n", "tenant", "--name", "A")
	on(0, "tenant  deleted  20", "list", "namespaces", "--deleted")
	on(0, "a   -       false    -", "list", "entities", "-n", "tenant")
	on(0, "namespace tenant recovered", "recover", "namespace", "tenant")
	on(0, "namespace.recover  $SYSTEM", "list", "audit", "--system", "-n", "tenant")
	on(0, "there are no orphans", "purge", "orphans", "--yes")
}

// purgeAnOrphan takes a namespace's name away, and purges the orphaned rest.
func purgeAnOrphan(t *testing.T, db *dynamodb.Client, table string, on func(code int, want string, args ...string)) {
	t.Helper()
	on(0, "entity a created", "set", "entity", "a", "-n", "lost", "--allow-new")
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	key := map[string]types.AttributeValue{"PK": text("_/SYSTEM#"), "SK": text("#NAMESPACE#lost")}
	out, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key, ReturnValues: types.ReturnValueAllOld})
	if err != nil {
		t.Fatal(err)
	}
	id := out.Attributes["namespace_id"].(*types.AttributeValueMemberS).Value
	on(0, id+"  lost  20", "list", "orphans")
	on(1, "is no id of an orphan", "purge", "orphans", "AAAAAAAAAAA", "--yes")
	on(2, "there is no terminal: add --yes", "purge", "orphans")
	on(0, "orphan "+id+" purged, 3 records deleted", "purge", "orphans", "--yes") // the entity, its change and its event
	on(0, "ID  NAME  CREATED\n", "list", "orphans")
}

// Balances of a table are changed without a service. Buckets of plans are found without a variant,
// and have their names where a configuration is given.
func TestBucketsOfATable(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	t.Chdir(t.TempDir())
	db := server.Client(t)
	if err := dynamo.CreateTable(t.Context(), db, table); err != nil {
		t.Fatal(err)
	}
	use := plannedTake(t, db, table)
	use("plan/free", 3)
	on := func(code int, want string, args ...string) {
		t.Helper()
		args = append(args, "--entity", "user/ada", "--resource", "api", "--table", table, "--endpoint", server.URL)
		var got int
		var text string
		eventually(t, "the bucket in the index of the table", func() bool {
			var stdout, stderr string
			got, stdout, stderr = output(t, args...)
			text = stdout + stderr
			return !strings.Contains(text, "none is in use")
		})
		if got != code || !strings.Contains(text, want) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", args, got, code, want, text)
		}
	}
	named := programtest.WriteFile(t, "c.yaml", fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %q, endpoint: %q}}\nplans: {free: {rpd: 10/day}}\ndomains: [{domain: d, rules: [{match: {user: '*'}, entity: 'user/{user}', resource: api, limits: free, consume: {rpd: 1}}]}]\n", table, server.URL))
	on(0, "changed (dry run: nothing was changed)", "reset", "bucket", "--dry-run")
	on(0, "7", "get", "bucket")
	on(0, "plan free", "get", "bucket", "-c", named)
	on(1, `3 of 25 tokens fit into limit rpd: nothing was booked, and the text "T" can be used later; add --up-to-capacity to book what fits, or --beyond`, "top-up", "bucket", "25", "--once", "T")
	on(0, "note: limit rpd: 3 of 25 tokens were booked, and 22 cut", "top-up", "bucket", "25", "--once", "T", "--up-to-capacity")
	on(0, "repeated: the first time a top-up of 25 booked rpd 3 (22 cut)", "top-up", "bucket", "25", "--once", "T")
	on(1, "0 of 25 tokens fit into limit rpd: nothing was booked", "top-up", "bucket", "25", "--once", "U", "--up-to-capacity")
	on(0, "changed", "take-out", "bucket", "4")
	on(0, "note: limit rpd: 4 of 25 tokens were booked, and 21 cut", "top-up", "bucket", "25", "--once", "U", "--up-to-capacity")
	use("", 2)
	eventually(t, "both buckets in the index of the table", func() bool {
		code, _, stderr := output(t, "reset", "bucket", "--entity", "user/ada", "--resource", "api", "--store", "dynamodb", "-c", named)
		return code == 1 && strings.Contains(stderr, "plan free") && strings.Contains(stderr, "--variant 0000000000000000")
	})
	on(0, "changed", "reset", "bucket", "--variant", "0000000000000000")
}

// plannedTake returns a function that takes tokens of 10 for user/ada, of a bucket of limits that
// belong to something.
func plannedTake(t *testing.T, db *dynamodb.Client, table string) func(of string, tokens int64) {
	t.Helper()
	store, err := dynamo.New(db, dynamo.Config{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	limits, err := limiter.NewLimits(limiter.PerDay("rpd", 10))
	if err != nil {
		t.Fatal(err)
	}
	return func(of string, tokens int64) {
		t.Helper()
		key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "user/ada", Resource: "api"}
		if of != "" {
			key.Variant = limiter.VariantOf(limits, of, "", false)
		}
		op := limiter.Op{Bucket: key, Limits: limits, Spends: []limiter.Spend{{Limit: "rpd", Take: tokens * limiter.Milli}}, Lease: limiter.LeasePolicy{None: true}}
		if admitted, err := store.Take(t.Context(), time.Now(), []limiter.Op{op}); !admitted || err != nil {
			t.Fatal(admitted, err)
		}
	}
}
