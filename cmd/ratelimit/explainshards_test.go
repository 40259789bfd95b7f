package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// split has another replica split the bucket of user/ada, and returns its shards.
func split(t *testing.T, server *dynamotest.Server, table string) []int {
	t.Helper()
	store, err := dynamo.New(server.Client(t), dynamo.Config{Table: table, ShardUnits: 3, Quiet: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(t.Context()) }()
	limits, err := limiter.NewLimits(limiter.PerHour("rpm", plenty))
	if err != nil {
		t.Fatal(err)
	}
	key := limiter.BucketKey{Namespace: limiter.DefaultNamespace, Entity: "user/ada", Resource: "api"}
	var all []int
	eventually(t, "two shards", func() bool {
		ops := []limiter.Op{{Bucket: key, Limits: limits, Generation: 1, Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}}}}
		if _, err := store.Take(t.Context(), time.Now(), ops); err != nil {
			t.Fatal(err)
		}
		if all, _, err = store.Shards(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		return len(all) > 1
	})
	return all
}

// An explanation names the shards of a bucket in a table, and the one that this replica
// takes from first. It does so unasked where there are several.
func TestExplainNamesShards(t *testing.T) {
	t.Parallel()
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", onTable(server.URL, table, strconv.Itoa(plenty)+"/hour")))
	ask := func(user string, more ...string) string {
		code, stdout, stderr := output(t, append([]string{"explain", "--server", "http://" + r.http, "shop", "user=" + user}, more...)...)
		if code != command.ExitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		return stdout
	}
	all := make([]string, 0, 2)
	for _, index := range split(t, server, table) {
		all = append(all, strconv.Itoa(index))
	}
	together := strings.Join(all, ",")
	for _, text := range []string{ask("ada"), ask("ada", "-o", "wide")} {
		if !strings.Contains(text, "ENOUGH  SHARDS  TAKES FROM") || !strings.Contains(text, "  "+together+"     ") {
			t.Errorf("shards %s are not named:\n%s", together, text)
		}
	}
	if text := ask("ada", "-o", "json"); !slices.ContainsFunc(all, func(index string) bool { return strings.Contains(text, `"first": `+index+"\n") }) {
		t.Errorf("no shard of %s is the first:\n%s", together, text)
	}
	if text := ask("eve"); strings.Contains(text, "SHARDS") {
		t.Errorf("shards of a bucket in one piece:\n%s", text)
	}
	if text := ask("eve", "-o", "wide"); !strings.Contains(text, "true    0       0\n") {
		t.Errorf("the only shard is not named:\n%s", text)
	}
}
