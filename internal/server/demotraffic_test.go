package server

import (
	"log/slog"
	"testing"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// Each call of the demo's traffic has a rule of the example rules. Within half a minute two clients are denied, and the
// others are not.
func TestDemoTraffic(t *testing.T) {
	cfg, err := config.Load("", config.Options{Demo: true})
	if err != nil {
		t.Fatal(err)
	}
	log := new(proctest.LogBuffer)
	s, err := New(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	denied := map[string]int{}
	for i := range 300 {
		call := demoTraffic(i)
		reply, err := s.RLS.Ask(t.Context(), call)
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if reply.Denied {
			denied[call.Entries[0].Value+" "+call.Entries[len(call.Entries)-1].Value]++
		}
	}
	if len(denied) != 2 || denied["k-123 gpt-4"] < 20 || denied["free /v1/chat/completions"] < 60 {
		t.Errorf("denied are %v", denied)
	}
	if got := s.RLS.Decided(); got["unmatched"] != 0 {
		t.Errorf("calls have no rule: %v", got)
	}
}
