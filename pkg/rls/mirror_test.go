package rls_test

import (
	"context"
	"sync/atomic"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimit/ratelimit/pkg/rls"
)

// A call of a mirror is answered, and not mirrored again: two services that mirror each other end.
func TestMirroredOnce(t *testing.T) {
	t.Parallel()
	var mirrored atomic.Int64
	e := newEnv(t, func(cfg *rls.Config) { cfg.Mirror = func(rls.Mirrored) { mirrored.Add(1) } })
	request := fromJSON(t, descriptor1(``, "k", "v"), &rlsv3.RateLimitRequest{})
	for _, ctx := range []context.Context{t.Context(), metadata.AppendToOutgoingContext(t.Context(), rls.MirroredHeader, "true")} {
		if _, err := rlsv3.NewRateLimitServiceClient(e.conn).ShouldRateLimit(ctx, request); err != nil {
			t.Fatal(err)
		}
	}
	if got := mirrored.Load(); got != 1 {
		t.Errorf("%d calls were mirrored, want that of a client", got)
	}
}
