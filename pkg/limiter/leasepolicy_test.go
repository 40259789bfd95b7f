package limiter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

func TestLeasePolicyCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy limiter.LeasePolicy
		ok     bool
	}{
		{"auto", limiter.LeasePolicy{}, true},
		{"none", limiter.LeasePolicy{None: true}, true},
		{"bounded", limiter.LeasePolicy{Max: tokenbucket.MaxAmount, For: limiter.MaxLeaseFor}, true},
		{"negative amount", limiter.LeasePolicy{Max: -1}, false},
		{"too much", limiter.LeasePolicy{Max: tokenbucket.MaxAmount + 1}, false},
		{"negative time", limiter.LeasePolicy{For: -1}, false},
		{"too long", limiter.LeasePolicy{For: limiter.MaxLeaseFor + time.Nanosecond}, false},
	} {
		if err := tt.policy.Check(); (err == nil) != tt.ok || err != nil && !errors.Is(err, limiter.ErrInvalid) {
			t.Errorf("%s: got %v, want ok = %v", tt.name, err, tt.ok)
		}
	}
}
