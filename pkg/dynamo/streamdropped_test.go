package dynamo

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/test/kit/quoted"
)

// Positions are forgotten of shards that the stream cannot have any more, and of no other.
func TestDroppedShards(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	shard := func(age time.Duration) string { return fmt.Sprintf("shardId-%020d-0a1b", now.Add(-age).UnixMilli()) }
	done, there, fresh, ancient := "shardId-done", shard(72*time.Hour), shard(47*time.Hour), shard(49*time.Hour)
	positions := map[string]schema.Position{done: "", there: "", fresh: "", ancient: "", "shardId-1-x": "", "": ""}
	var s streamShards
	s.finished([]aggregator.Lease{{Shard: done, Done: true}, {Shard: fresh}})
	if got := s.dropped(positions, now); len(got) != 0 {
		t.Errorf("before a list of shards: %q", got)
	}
	s.listed([]aggregator.Shard{{ID: there}})
	got := s.dropped(positions, now)
	slices.Sort(got)
	if want := []string{ancient, done}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The page about the aggregator has the time until a name is looked up again.
func TestThePageHasTheNumbers(t *testing.T) {
	quoted.Require(t, "../../docs/aggregator.md", fmt.Sprintf("with a warning in the log, and looked up again after %.0f seconds", catalog.NamelessFor.Seconds()))
}
