package operate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// fleetReplicas is the part of GET /v1/fleet that these tests read.
type fleetReplicas struct {
	Results  map[string][]int64 `json:"results"`
	Replicas []struct {
		Here  bool `json:"here"`
		Store struct {
			Type string `json:"type"`
		} `json:"store"`
	} `json:"replicas"`
	Events []replicaEvent `json:"events"`
}

type replicaEvent struct {
	Kind string `json:"kind"`
}

// seenWithin is how long a change of a replica takes at most until another one shows it: the pause between two reports,
// the time for which those are kept, and some for a busy machine. A killed one is shown for a minute more.
const seenWithin = 50 * time.Second

// Three replicas on each store of a fleet see each other: their decisions and denials, their starts and stops. One that is
// killed disappears.
func TestReplicasSeeEachOther(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) string{"dynamodb": tableStore, "valkey": serverStore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := open(t) + `
log: {format: json}
drain: 0s
decision: {timeout: 10s}
limits: {system: {rpm: 2/minute}}
domains:
- domain: shop
  rules:
  - {name: users, match: {user: "*"}, entity: "user/{user}", resource: api, consume: {rpm: hits}}
`
			one, two, three := startService(t, config), startService(t, config), startService(t, config)
			one.await(t, "three replicas", seenWithin, func(f *fleetReplicas) bool { return len(f.Replicas) == 3 && f.Replicas[0].Here })
			for range 5 {
				two.call(t, "ada")
			}
			three.call(t, "bob")
			one.await(t, "the decisions of all", seenWithin, func(f *fleetReplicas) bool {
				return sum(f.Results["allowed"]) == 3 && sum(f.Results["denied"]) == 3 && f.Replicas[1].Store.Type == name
			})
			if out := one.shell(t, "ratelimit top --fleet"); !strings.Contains(out, "user/ada  api       rpm    3") {
				t.Errorf("top --fleet:\n%s", out)
			}
			if out := one.shell(t, "ratelimit top"); strings.Contains(out, "ada") {
				t.Errorf("top of a replica that has decided nothing:\n%s", out)
			}

			kill(t, three, syscall.SIGTERM)
			one.await(t, "the stop of a replica", seenWithin, func(f *fleetReplicas) bool {
				return len(f.Replicas) == 2 && slices.ContainsFunc(f.Events, func(e replicaEvent) bool { return e.Kind == "stop" })
			})
			kill(t, two, syscall.SIGKILL)
			f := one.await(t, "the end of a killed replica", time.Minute+seenWithin, func(f *fleetReplicas) bool { return len(f.Replicas) == 1 })
			if n := sum(f.Results["denied"]); n != 3 {
				t.Errorf("%d denials are left, want 3", n)
			}
			starts := slices.DeleteFunc(f.Events, func(e replicaEvent) bool { return e.Kind != "start" })
			if len(starts) != 3 {
				t.Errorf("starts: %+v", starts)
			}
		})
	}
}

func kill(t *testing.T, s *service, how syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.process, how); err != nil {
		t.Fatal(err)
	}
}

func sum(list []int64) (n int64) {
	for _, one := range list {
		n += one
	}
	return n
}

// call asks for one hit of a user.
func (s *service) call(t *testing.T, user string) {
	t.Helper()
	body := fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":%q}]}]}`, user)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.http+"/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("status %d", answer.StatusCode)
	}
}

// await asks for the fleet until it is as wanted.
func (s *service) await(t *testing.T, what string, within time.Duration, wanted func(*fleetReplicas) bool) *fleetReplicas {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	text := []byte{}
	for deadline := time.After(within); ; {
		f := new(fleetReplicas)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://service/v1/fleet", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(r); err == nil {
			text, _ = io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if json.Unmarshal(text, f) == nil && len(f.Replicas) > 0 && wanted(f) {
				return f
			}
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s:\n%s", what, text)
		case <-ticker.C:
		}
	}
}
