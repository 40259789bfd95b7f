package storetest

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// recorder is a T that records failures instead of failing.
type recorder struct {
	T

	ctx      context.Context //nolint:containedctx // it stands for a test, which has one
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Fail()               { r.Errorf("failed") }
func (r *recorder) FailNow()            { r.Fatalf("failed") }
func (r *recorder) Error(args ...any)   { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)   { r.Fatalf("%s", fmt.Sprint(args...)) }
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Log(...any)          {}

// try runs a check against a store and returns its failures. Calls that never return are ended
// after a second.
func try(t *testing.T, c check, s limiter.Store) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r := &recorder{T: t, ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		c.run(r, s)
	}()
	<-done
	return r.failures
}

// TestBrokenStoresFail runs checks against stores that are broken on purpose, each
// in one way, and requires that the checks find it. Every check of the suite
// must have found something.
func TestBrokenStoresFail(t *testing.T) {
	setFlag(t, "rapid.nofailfile", "true")
	setFlag(t, "rapid.shrinktime", "1ms")
	found := make(map[string]bool)
	for _, b := range brokenStores() {
		for _, name := range b.foundBy {
			i := slices.IndexFunc(checks(), func(c check) bool { return c.name == name })
			if i < 0 {
				t.Fatalf("%s: there is no check %q", b.name, name)
			}
			var failures []string
			for round := 0; round < 20 && len(failures) == 0; round++ { // some are found by chance
				failures = try(t, checks()[i], b.wrap(newReference()))
			}
			if len(failures) == 0 {
				t.Errorf("a store that %s passes %q", b.name, name)
				continue
			}
			found[name] = true
			t.Logf("%s: %s: %s", b.name, name, strings.SplitN(failures[0], "\n", 2)[0])
		}
	}
	for _, c := range checks() {
		if !found[c.name] {
			t.Errorf("no broken store shows that %q can fail", c.name)
		}
	}
}

func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, before); err != nil {
			t.Error(err)
		}
	})
}
