package limiter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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

// A limit that is deleted while a request is resolved has no status, and no holding, in a bucket that
// another take of the request asks for it.
func TestALimitThatGoesWhileItIsResolved(t *testing.T) {
	store := newStore(t)
	changing := &changingStore{Store: store}
	l := newLimiter(t, limiter.Config{Store: changing}, limiter.Static{System: set(t, limiter.PerMinute("y", 10))})
	if _, err := store.PutEntity(t.Context(), t0, limiter.DefaultNamespace, limiter.Entity{ID: "child", Parent: "p", Cascade: true}); err != nil {
		t.Fatal(err)
	}
	put := func(entity string, limits ...limiter.Limit) {
		record := limiter.Record{Limits: set(t, limits...)}
		if err := store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.EntityLimitsRef(entity, "r"), record); err != nil {
			t.Fatal(err)
		}
	}
	put("p", limiter.PerMinute("x", 10), limiter.PerMinute("z", 10))
	put("child", limiter.PerMinute("x", 10))
	changing.second = func() { put("p", limiter.PerMinute("z", 10)) }
	req := take("child", "r", "x", 1, "y", 1)
	req.Takes = append(req.Takes, take("p", "r", "x", 1).Takes...)
	d := decide(t, l, t0, req)
	if held := d.Holdings(nil, req, 0); !d.Admitted || slices.ContainsFunc(held, func(h limiter.Holding) bool { return h.Level == 1 && h.Taken[0].Limit == "x" }) {
		t.Errorf("%v, held %+v", brief(d), held)
	}
}

// changingStore calls a function before the second read.
type changingStore struct {
	limiter.Store

	reads  int
	second func()
}

func (s *changingStore) Read(ctx context.Context, namespace string, refs []limiter.Ref, records []limiter.Record) (uint64, error) {
	if s.reads++; s.reads == 2 {
		s.second()
	}
	return s.Store.Read(ctx, namespace, refs, records)
}

// An operator waits for limits longer than a decision. Those that were not read in time are no answer.
func TestEffectiveOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t)
		l := newLimiter(t, limiter.Config{Store: s}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 1))})
		defer l.Close()
		if err := s.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.EntityLimitsRef("a", "m"), limiter.Record{Limits: set(t, limiter.PerMinute("rpm", 500))}); err != nil {
			t.Fatal(err)
		}
		s.read = limiter.DefaultTimeout * 2
		if got, err := l.Effective(t.Context(), t0, limiter.DefaultNamespace, "a", "m"); err != nil || len(got) != 1 || got[0].Source != limiter.SourceEntity {
			t.Errorf("of a busy store: %+v, %v", got, err)
		}
		s.read = time.Hour
		if got, err := l.Effective(t.Context(), t0, limiter.DefaultNamespace, "b", "m"); !errors.Is(err, limiter.ErrUnavailable) {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
