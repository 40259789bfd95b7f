package manifest

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A manifest allows the names that it has at the system or at resources, and no others beside them.
func TestDefines(t *testing.T) {
	limits := func(names ...string) Record {
		l := &api.Limits{Limits: map[string]api.Limit{}}
		for _, name := range names {
			l.Limits[name] = api.Limit{}
		}
		return Record{Limits: l}
	}
	p := &Plan{Changes: []Change{
		{Ref: limiter.SystemLimitsRef(), after: limits("rpm", "tpm")},
		{Ref: limiter.EntityLimitsRef("typo", "_default_"), after: limits("rpm", "tmp")},
		{Ref: limiter.EntityLimitsRef("sound", "_default_"), after: limits("rpm", "tpm")},
	}}
	for i, want := range []bool{false, false, true} {
		if got := p.defines(&p.Changes[i]); got != want {
			t.Errorf("change %d: %t, want %t", i, got, want)
		}
	}
}
