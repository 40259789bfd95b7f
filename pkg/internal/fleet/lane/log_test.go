package lane

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// For any number of requests that lose tokens and of tasks that fail, there is one line a second of each. It
// has the number of those without a line.
func TestLinesOfLanesAreSampled(t *testing.T) {
	var text strings.Builder
	now := time.UnixMilli(testTime)
	lanes := New(Config{Loop: awsdb.Goroutines{}, Now: func() time.Time { return now }, Logger: slog.New(slog.NewTextHandler(&text, nil))})
	defer lanes.Stop()
	l := newLane(&lanes.host, new(set[*Lane]), &Site{Bucket: limiter.BucketKey{Entity: "e"}}, 0, schema.Key{}, 0)
	for second := range 2 {
		for i := range 100 {
			l.closer.lost(&Request{Site: &l.site, Request: &plan.Request{}}, &lanes.Counters.LostUnknown, fmt.Errorf("loss %d", i))
			l.keeper.rest("split", errors.New("refused"), now)
			l.loseUsage(&lanes.Counters.LostUsage.Reply, causeReply, 1)
		}
		for _, kind := range []string{"tokens of a request", "a task of a bucket failed", "usage of a bucket is lost"} {
			if got := strings.Count(text.String(), kind); got != second+1 {
				t.Errorf("lines about %s: got %d, want %d", kind, got, second+1)
			}
		}
		now = now.Add(time.Second)
	}
	if got := strings.Count(text.String(), "suppressed=99"); got != 3 {
		t.Errorf("%d lines with 99 suppressed, want 3:\n%s", got, &text)
	}
	if got := lanes.Counters.Lost.Load(); got != 200 {
		t.Errorf("%d losses are counted, want 200", got)
	}
}
