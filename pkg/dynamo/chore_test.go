package dynamo

import (
	"testing"
	"time"
)

// A shard is changed at no time before its last refill and its last take, whatever this
// machine's clock says: merged from an earlier time, two shards that were full would get
// once more the refill that they had no room for.
func TestMaintenanceIsNotBeforeTheLastTake(t *testing.T) {
	s := &Store{cfg: Config{Now: func() time.Time { return time.UnixMilli(1000) }}}
	for _, tt := range []struct{ refilled, taken, want int64 }{
		{500, 400, 1000},
		{2000, 400, 2000},
		{500, 3000, 3000},
		{2000, 3000, 3000},
	} {
		l := &lane{knows: knowledge{view: &view{refilled: tt.refilled, taken: tt.taken}}}
		if got := s.lately(l); got != tt.want {
			t.Errorf("refilled at %d, taken at %d: got %d, want %d", tt.refilled, tt.taken, got, tt.want)
		}
	}
}
