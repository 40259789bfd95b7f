package valkey_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A replica's first decision on a key that others have asked for is one message. It is told what they left, and its use
// is counted once.
func TestKeysThatOthersAskedFor(t *testing.T) {
	const keys, rounds, most = 300, 3, 1.02 // messages a decision
	server := valkeytest.Start(t)
	limits, err := limiter.NewLimits(limiter.PerDay("requests", 100), limiter.PerDay("tokens", 1000))
	if err != nil {
		t.Fatal(err)
	}
	cfg, stores := configOf(t, server, nil), make([]*valkey.Store, 3)
	for i := range stores {
		stores[i], err = valkey.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := stores[i].Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	messages := server.Scripts()
	for n := range int64(len(stores) * rounds) {
		var work sync.WaitGroup
		for worker := range 8 {
			work.Go(func() {
				for k := worker; k < keys; k += 8 {
					ops := []limiter.Op{{
						Bucket: limiter.BucketKey{Namespace: "ns", Entity: fmt.Sprint("key/", k), Resource: "gpt"}, Limits: limits,
						Spends: []limiter.Spend{{Limit: "requests", Take: limiter.Milli}, {Limit: "tokens", Take: 10 * limiter.Milli}},
					}}
					admitted, err := stores[n%3].Take(t.Context(), time.Now(), ops)
					if err != nil || !admitted {
						t.Errorf("key %d, decision %d: %t, %v; want it admitted", k, n, admitted, err)
						return
					}
					if got, want := ops[0].Spends[0].Bucket.Tokens/limiter.Milli, 100-1-n; got != want {
						t.Errorf("key %d, decision %d: %d requests left, want %d", k, n, got, want)
					}
					if got, want := ops[0].Spends[1].Bucket.Tokens/limiter.Milli, 1000-10*(1+n); got != want {
						t.Errorf("key %d, decision %d: %d tokens left, want %d", k, n, got, want)
					}
				}
			})
		}
		work.Wait()
	}
	if tokens, events := sumOf(t, stores[0], limiter.UsageMonth); tokens != 11*keys*rounds*3 || events != keys*rounds*3 {
		t.Errorf("the use is %d tokens in %d decisions, want %d in %d", tokens, events, 11*keys*rounds*3, keys*rounds*3)
	}
	if got := float64(server.Scripts()-messages) / (float64(len(stores)) * rounds * keys); got > most {
		t.Errorf("%.3f messages a decision, want at most %.2f", got, most)
	}
}
