package catalog

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// eachServer runs a test on the table of a fake, and on one of DynamoDB Local.
func eachServer(t *testing.T, test func(t *testing.T, client awsdb.Client, table string)) {
	t.Helper()
	for name, client := range map[string]awsdb.Client{"fake": dynamofake.New(), "local": dynamotest.Start(t).Client(t)} {
		t.Run(name, func(t *testing.T) {
			table := dynamotest.TableName(t)
			if err := CreateTable(t.Context(), client, table); err != nil {
				t.Fatal(err)
			}
			test(t, client, table)
		})
	}
}

// The last report of each aggregator is read as it was written, with its age.
func TestProgress(t *testing.T) {
	eachServer(t, func(t *testing.T, client awsdb.Client, table string) {
		now := time.Now().Truncate(time.Millisecond)
		p := NewProgress(awsdb.ItemsOf(client, table), table, func() time.Time { return now })
		first := aggregator.Progress{ID: "a", Shards: 3, Behind: 90 * time.Second}
		want := []aggregator.Progress{
			{ID: "a", Shards: 1, Behind: 0, Problem: "no permission", Age: 2 * time.Second},
			{ID: "b", Function: true, Shards: 1, Behind: 1234 * time.Millisecond, Age: 2 * time.Second},
			{ID: strings.Repeat("c", limiter.MaxReplicaLength), Stopped: true, Age: 2 * time.Second},
		}
		for _, report := range append([]aggregator.Progress{first}, want...) {
			if err := p.Report(t.Context(), &report); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(2 * time.Second)
		wantProgress(t, p, want)
		if err := p.Report(t.Context(), &aggregator.Progress{ID: "A"}); !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("an id in upper case: %v", err)
		}
		bad := schema.PutProgress(&first, now)
		bad.Item["behind"] = avS("long")
		bad.Item["SK"] = avS("#AGGREGATOR#bad")
		if _, err := awsdb.ItemsOf(client, table).Write(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		wantProgress(t, p, want) // an item that is no report is left out
	})
}

func wantProgress(t *testing.T, p *Progress, want []aggregator.Progress) {
	t.Helper()
	got, err := p.Aggregators(t.Context())
	slices.SortFunc(got, func(a, b aggregator.Progress) int { return cmp.Compare(a.ID, b.ID) })
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// The newest report stays for days, so that an operator sees when the last aggregator worked. Others are deleted after half an hour:
// processes that come and go leave no heap.
func TestProgressOfFormerProcesses(t *testing.T) {
	eachServer(t, func(t *testing.T, client awsdb.Client, table string) {
		began := time.Now().Truncate(time.Millisecond)
		now := began
		p := NewProgress(awsdb.ItemsOf(client, table), table, func() time.Time { return now })
		for i, id := range []string{"d", "b", "c", "a"} {
			now = began.Add(time.Duration(i) * time.Minute)
			if err := p.Report(t.Context(), &aggregator.Progress{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		now = began.Add(limiter.ReportAge + 150*time.Second) // a and c are newer
		if all, err := p.Aggregators(t.Context()); err != nil || len(all) != 4 {
			t.Errorf("the first read: %+v, %v", all, err)
		}
		wantProgress(t, p, []aggregator.Progress{{ID: "a", Age: limiter.ReportAge - 30*time.Second}})
		now = began.Add(3*time.Minute + aggregator.ProgressAge - time.Millisecond)
		for range 2 {
			wantProgress(t, p, []aggregator.Progress{{ID: "a", Age: aggregator.ProgressAge - time.Millisecond}})
		}
		now = now.Add(time.Millisecond)
		wantProgress(t, p, nil)
		out, err := client.Query(t.Context(), schema.QueryProgress(table))
		if err != nil || len(out.Items) != 1 || out.Items[0]["ttl"] == nil {
			t.Errorf("items %+v, %v; want one that expires", out, err)
		}
		missing := table + "-none"
		none := NewProgress(awsdb.ItemsOf(client, missing), missing, time.Now)
		if _, err := none.Aggregators(t.Context()); !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("reports of a table that is not there: %v", err)
		}
		if err := none.Report(t.Context(), &aggregator.Progress{ID: "a"}); !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("a report to a table that is not there: %v", err)
		}
	})
}
