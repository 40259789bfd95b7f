package controlapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// slow is a store with slow purges, or purges that fail.
type slow struct {
	controlapi.Store

	left time.Duration
	err  error
}

func (s *slow) Purge(ctx context.Context, _ time.Time, _ string, progress func(int)) error {
	began := time.Now()
	defer func() { s.left -= time.Since(began) }()
	progress(7)
	select {
	case <-time.After(s.left):
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, ctx.Err())
	}
}

// A purge continues over requests of 5 s each. An error of the store is an error of the request.
// The roles read and operate do not suffice.
func TestPurgesAreSliced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Store: inMemory(t), left: 12 * time.Second}
		s := newServer(t, store)
		const target = "/v1/namespaces/n/purge"
		for _, role := range []admin.Role{admin.RoleRead, admin.RoleOperate} {
			if w := s.as(t, role, http.MethodPost, target, ""); w.Code != http.StatusForbidden {
				t.Errorf("as %s: %d %s", role, w.Code, w.Body)
			}
		}
		for i, want := range []api.Purged{{Deleted: 7}, {Deleted: 7}, {Deleted: 7, Done: true}} {
			began := time.Now()
			var got api.Purged
			if err := json.Unmarshal(s.must(t, http.StatusOK, http.MethodPost, target, "").Body.Bytes(), &got); err != nil || got != want {
				t.Errorf("request %d: %+v, %v; want %+v", i, got, err, want)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("request %d took %v", i, took)
			}
		}
		store.err = errors.New("broken")
		if w := s.do(t, http.MethodPost, target, ""); w.Code != http.StatusServiceUnavailable {
			t.Errorf("of a store that fails: %d %s", w.Code, w.Body)
		}
	})
}

// hanging is a store that answers no change within the caller's time.
type hanging struct{ controlapi.Store }

func (hanging) Edit(ctx context.Context, _ time.Time, _ string, _ limiter.Edit) (limiter.Edited, error) {
	<-ctx.Done()
	return limiter.Edited{}, fmt.Errorf("%w: %w", limiter.ErrUncertain, ctx.Err())
}

// A change gets an answer even if the store hangs, before the listener closes the connection.
func TestAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, hanging{inMemory(t)})
		began := time.Now()
		w := s.do(t, http.MethodDelete, "/v1/namespaces/n", "")
		var p api.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable || p.Type != api.Uncertain {
			t.Errorf("%d %s, %v; want 503, and that the outcome is uncertain", w.Code, w.Body, err)
		}
		if took := time.Since(began); took >= admin.ControlTimeout {
			t.Errorf("it took %v, want less than %v", took, admin.ControlTimeout)
		}
	})
}
