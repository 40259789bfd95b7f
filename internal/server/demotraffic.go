package server

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// demoPace is the time from one call of the demo's traffic to the next.
const demoPace = 100 * time.Millisecond

// makeTraffic calls the service as clients of the example rules would, until ctx ends: 10 calls a second, of which some are
// denied. Errors and answers are in the metrics like those of other calls.
func (s *Service) makeTraffic(ctx context.Context) error {
	if !s.traffic {
		return nil
	}
	s.log.InfoContext(ctx, "the demo makes traffic of its own", "pace", demoPace)
	tick := time.NewTicker(demoPace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_, _ = s.RLS.Ask(ctx, demoTraffic(i)) // nobody waits for the answer
		}
	}
}

// demoTraffic returns the i-th call of the traffic. A round of ten calls, in a second, has two clients above their limits: user
// ada has 20 calls a minute, and key k-123 has 60.
func demoTraffic(i int) *rls.Direct {
	key := func(key, model string) []descriptor.Entry {
		return []descriptor.Entry{{Key: "api_key", Value: key}, {Key: "model", Value: model}}
	}
	user := func(plan, user, path string) []descriptor.Entry {
		return []descriptor.Entry{{Key: "plan", Value: plan}, {Key: "user", Value: user}, {Key: "PATH", Value: path}}
	}
	round := [...][]descriptor.Entry{
		key("k-123", "gpt-4"), user("free", "ada", "/v1/chat/completions"),
		key("k-456", "gpt-4o-mini"), user("paid", "bob", "/v1/embeddings"),
		key("k-123", "gpt-4"), user("free", "ada", "/v1/chat/completions"),
		key("k-456", "gpt-4o"), user("free", "ada", "/v1/chat/completions"),
		key("k-123", "gpt-4"),
		{{Key: "remote_address", Value: "10.0.0.7"}},
	}
	return &rls.Direct{Domain: "llm-gateway", Use: descriptor.UseTake, Entries: round[i%len(round)]}
}
