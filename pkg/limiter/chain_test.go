package limiter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The limits in a request apply to its entity. Its ancestors have their own.
func TestOwnLimitsAreNotTheAncestors(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System:   set(t, limiter.PerMinute("rpm", 100)),
		Entities: map[string]limiter.StaticEntity{"key": {Parent: "org", Cascade: true}},
	})
	req := take("key", "m", "rpm", 1)
	req.Takes[0].Limits = set(t, limiter.PerMinute("rpm", 2))
	wantBrief(t, decide(t, l, t0, req), "admitted=true none retry=0s", "key/m rpm 1 left exceeded=false", "org/m rpm 99 left exceeded=false")
	// The ancestor's bucket is the ordinary one, which other requests share.
	wantBrief(t, decide(t, l, t0, take("org", "m", "rpm", 1)), "admitted=true none retry=0s", "org/m rpm 98 left exceeded=false")
}

// Stored entities and named parents can make a cycle, which no store can refuse.
func TestCircleOfNamedAndStoredParents(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System: set(t, limiter.PerMinute("rpm", 100)),
		Entities: map[string]limiter.StaticEntity{
			"project": {Parent: "org", Cascade: true},
			"org":     {Parent: "key", Cascade: true},
		},
	})
	req := take("key", "m", "rpm", 1)
	req.Takes[0].Parents = []string{"project"}
	wantBrief(t, decide(t, l, t0, req), "admitted=true none retry=0s",
		"key/m rpm 99 left exceeded=false", "project/m rpm 99 left exceeded=false", "org/m rpm 99 left exceeded=false")
}

// The limits of a bucket are those of each level, and none if no level has any.
func TestEffective(t *testing.T) {
	l := newLimiter(t, limiter.Config{}, limiter.Static{
		System:    set(t, limiter.PerMinute("tpm", 7)),
		Resources: map[string]*limiter.Limits{"m": set(t, limiter.PerMinute("rpm", 100))},
		Entities:  map[string]limiter.StaticEntity{"key": {Parent: "org", Cascade: true}},
	})
	system := limiter.EffectiveLimit{Limit: limiter.PerMinute("tpm", 7), Source: limiter.SourceSystemConfig}
	for resource, want := range map[string][]limiter.EffectiveLimit{
		"m":     {{Limit: limiter.PerMinute("rpm", 100), Source: limiter.SourceResourceConfig}, system},
		"other": {system},
	} {
		if got, err := l.Effective(t.Context(), t0, limiter.DefaultNamespace, "key", resource); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", resource, got, err, want)
		}
	}
}
