package dynamo

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// streamPlace names a stream. A table has a stream with new names each time that it is switched on.
type streamPlace struct{ arn, label string }

// streamShards are the stream that is read, and its shards. It is safe for concurrent use.
type streamShards struct {
	mu    sync.Mutex
	at    streamPlace
	done  map[string]bool // shards that are done, as last listed
	gone  map[string]bool // those of them that the stream has dropped since
	there map[string]bool // shards that the stream had, as last listed; nil = not listed yet
}

// move begins to read another stream.
func (s *streamShards) move(at streamPlace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.done, s.gone, s.there = at, nil, nil, nil
}

// place returns the stream that is read.
func (s *streamShards) place() streamPlace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// listed notes which shards the stream has, and which of the shards that are done it has dropped.
func (s *streamShards) listed(shards []aggregator.Shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there = make(map[string]bool, len(shards))
	for _, sh := range shards {
		s.there[sh.ID] = true
	}
	s.gone = make(map[string]bool)
	for id := range s.done {
		if !s.there[id] {
			s.gone[id] = true
		}
	}
}

// shardAge is how old a shard is that the stream cannot have any more where its list lacks it.
// Records stay for a day, and a list may be a little old.
const shardAge = 48 * time.Hour

// dropped returns those of the shards that the stream has dropped: shards that are done, and old
// ones. An aggregator without leases has no list of shards that are done.
func (s *streamShards) dropped(positions map[string]schema.Position, now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []string
	for shard := range positions {
		if s.gone[shard] || s.there != nil && !s.there[shard] && oldShard(shard, now) {
			gone = append(gone, shard)
		}
	}
	return gone
}

// oldShard reports whether a shard is older than shardAge, by the time in its id: "shardId-", Unix
// milliseconds in 20 digits, "-", and more. A shard with another id is not.
func oldShard(shard string, now time.Time) bool {
	digits, _, _ := strings.Cut(strings.TrimPrefix(shard, "shardId-"), "-")
	ms, err := strconv.ParseInt(digits, 10, 64)
	return err == nil && len(digits) == 20 && now.Sub(time.UnixMilli(ms)) > shardAge
}

// finished notes the shards that are done.
func (s *streamShards) finished(leases []aggregator.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = make(map[string]bool)
	for _, l := range leases {
		if l.Done {
			s.done[l.Shard] = true
		}
	}
}
