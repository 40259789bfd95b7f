package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// tokens has a bucket of 100,000 tokens that refills one in about two minutes. Usage
// is charged after the fact, or reserved and settled.
const tokens = `
limits: {system: {tpm: {rate: 720/day, burst: 100000}}}
domains:
- domain: shop
  rules:
  - {match: {user: "*"}, entity: "user/{user}", resource: llm, consume: {tpm: hits}, overdraw: true}
  - {match: {user: "*", op: reserve}, entity: "user/{user}", resource: llm, reserve: {tpm: hits}}
  - {match: {reservation_id: "*"}, settle: {tpm: hits}}
`

// call makes a call of one descriptor and returns the answer's code and metadata.
func (r replica) call(t *testing.T, hits int, pairs ...string) (code int, metadata map[string]any) {
	t.Helper()
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, fmt.Sprintf(`{"key":%q,"value":%q}`, pairs[i], pairs[i+1]))
	}
	code, text := r.do(t, http.MethodPost, "/json", fmt.Sprintf(`{"domain":"shop","descriptors":[{"entries":[%s],"hitsAddend":"%d"}]}`, strings.Join(entries, ","), hits))
	var answer struct {
		DynamicMetadata map[string]any `json:"dynamicMetadata"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return code, answer.DynamicMetadata
}

// left returns the remaining whole tokens of ada.
func (r replica) left(t *testing.T) int {
	t.Helper()
	code, text := r.do(t, http.MethodPost, "/json", `{"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"ada"}],"hitsAddend":"0"}]}`)
	var answer struct {
		Statuses []struct {
			LimitRemaining int `json:"limitRemaining"`
		} `json:"statuses"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK || strings.Contains(text, "degraded") {
		t.Fatalf("a look got %d %s: %v", code, text, err)
	}
	return answer.Statuses[0].LimitRemaining
}

// metric returns the value of a metric without labels.
func (r replica) metric(t *testing.T, name string) string {
	t.Helper()
	_, text := r.do(t, http.MethodGet, "/metrics", "")
	_, rest, ok := strings.Cut(text, "\n"+name+" ")
	if !ok {
		t.Fatalf("there is no metric %s", name)
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// Usage of the time without answers from the table is charged when it answers again,
// each charge once: 50 charges of 1000, after any outcome of the calls.
func TestChargesOutliveAnOutage(t *testing.T) {
	for _, kind := range []dynamofake.Kind{dynamofake.ServerError, dynamofake.Throttle, dynamofake.HoldRequest, dynamofake.HoldReply, dynamofake.LoseReply, dynamofake.AppliedError} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				r := startReplica(t, db, tokens)
				defer r.stop()
				r.call(t, 1000, "user", "ada")
				db.SetPlan(func(dynamofake.Call) dynamofake.Fault { return dynamofake.Fault{Kind: kind} })
				done := make(chan int)
				for range 50 {
					go func() {
						code, _ := r.call(t, 1000, "user", "ada")
						done <- code
					}()
				}
				time.Sleep(20 * time.Second)
				db.SetPlan(nil)
				for range 50 {
					if code := <-done; code != http.StatusOK {
						t.Errorf("a charge was answered by %d", code)
					}
				}
				time.Sleep(30 * time.Second)
				if got := r.left(t); got != 49_000 {
					t.Errorf("left: got %d, want 49000; kept %s, booked later %s, lost %s, uncertain %s", got, r.metric(t, "ratelimit_kept_bookings"),
						r.metric(t, "ratelimit_kept_bookings_booked_total"), r.metric(t, "ratelimit_kept_bookings_lost_total"), r.metric(t, "ratelimit_uncertain_bookings_total"))
				}
				if got := r.metric(t, "ratelimit_kept_bookings"); got != "0" {
					t.Errorf("bookings that wait: got %s, want 0", got)
				}
			})
		})
	}
}

// A service that ends writes its pending charges, if the table answers in time, and
// reports those that it could not write.
func TestChargesAreWrittenAtTheEnd(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // that the table answers again
		left  int
		log   string
	}{
		{"in time", 500 * time.Millisecond, 70_000, ""},
		{"too late", time.Hour, 100_000, "30 charges, refunds and settlements are lost, or their outcome is unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := newTable(t)
				r, other := startReplica(t, db, tokens), startReplica(t, db, tokens)
				defer other.stop()
				r.left(t)
				db.SetPlan(serverError)
				var calls sync.WaitGroup
				for range 30 {
					calls.Go(func() { r.call(t, 1000, "user", "ada") })
				}
				time.Sleep(500 * time.Millisecond)
				recovery := time.AfterFunc(test.after, func() { db.SetPlan(nil) })
				r.stop()
				calls.Wait()
				if log := r.log.String(); !strings.Contains(log, test.log) || test.log == "" && strings.Contains(log, "are lost") {
					t.Errorf("the log does not say %q:\n%s", test.log, log)
				}
				recovery.Stop()
				db.SetPlan(nil)
				time.Sleep(30 * time.Second)
				if got := other.left(t); got != test.left {
					t.Errorf("left: got %d, want %d", got, test.left)
				}
			})
		})
	}
}

// One replica settles the reservation of another, by the key in the store; also after
// an outage of the table.
func TestReplicasSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newTable(t)
		a, b := startReplica(t, db, tokens), startReplica(t, db, tokens)
		defer a.stop()
		defer b.stop()
		settle := func(r replica, used int, id any) string {
			t.Helper()
			_, metadata := r.call(t, used, "reservation_id", fmt.Sprint(id))
			list, ok := metadata["settlements"].([]any)
			if !ok || len(list) != 1 {
				t.Fatalf("settlements: got %v", metadata)
			}
			return fmt.Sprint(list[0].(map[string]any)["result"])
		}
		_, first := a.call(t, 5000, "user", "ada", "op", "reserve")
		_, second := a.call(t, 7000, "user", "ada", "op", "reserve")
		if got := settle(b, 1000, first["reservation_id"]); got != "settled" {
			t.Errorf("at another replica: got %s, want settled", got)
		}
		db.SetPlan(serverError)
		if got := settle(b, 2000, second["reservation_id"]); got != "kept" {
			t.Errorf("while the table does not answer: got %s, want kept", got)
		}
		db.SetPlan(nil)
		time.Sleep(time.Minute)
		if got := settle(a, 0, second["reservation_id"]); got != "repeated" {
			t.Errorf("again: got %s, want repeated", got)
		}
		if got := a.left(t); got != 97_000 {
			t.Errorf("left: got %d, want 97000", got)
		}
	})
}
