package envoytest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// The streams whose cost is measured. With less than some milliseconds between events Envoy gets
// several at once, which costs less for each.
const (
	streamEvents  = 200
	betweenEvents = 5 * time.Millisecond
	streamsAtOnce = 40
)

// Envoy's CPU for a stream of 200 events with the Lua of examples/llm is at most 1.5 times that of
// the same file without it. That was measured on an idle machine; the test allows 2.
func TestUsageScriptCost(t *testing.T) {
	envoytest.Need(t)
	upstream := startEvents(t)
	file := example(t, "../llm/envoy.yaml")
	service := envoytest.StartService(t, envoytest.WithoutRefill(t, example(t, "../llm/ratelimit.yaml")), "", "")
	ports := envoytest.Ports{servicePort: {service.GRPC}, upstreamPort: {upstream}}
	with := envoytest.StartEnvoy(t, file, ports)
	without := envoytest.StartEnvoy(t, withoutLua(t, file), ports)
	var cost [2][]time.Duration
	for round := range 4 {
		for i, envoy := range []*envoytest.Envoy{with, without} {
			begin := envoy.CPUTime(t)
			streams(t, envoy, fmt.Sprintf("key-%d-%d", round, i))
			if spent := envoy.CPUTime(t) - begin; round > 0 { // the first warms up
				cost[i] = append(cost[i], spent)
			}
		}
	}
	median := func(times []time.Duration) time.Duration {
		slices.Sort(times)
		return times[len(times)/2]
	}
	ratio := float64(median(cost[0])) / float64(median(cost[1]))
	t.Logf("Envoy's CPU for %d streams of %d events: %v with Lua, %v without: %.2f times", streamsAtOnce, streamEvents, cost[0], cost[1], ratio)
	if ratio > 1.5 {
		t.Errorf("with Lua: got %.2f times the CPU, want at most 1.5 times", ratio)
	}
}

// startEvents starts an upstream that streams events, the usage in the last one.
func startEvents(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", streamType)
		control := http.NewResponseController(w)
		next := time.NewTicker(betweenEvents)
		defer next.Stop()
		for i := range streamEvents {
			event := word
			if i == streamEvents-1 {
				event = last
			}
			_, _ = io.WriteString(w, stream("\n", event))
			_ = control.Flush()
			select {
			case <-next.C:
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// streams has Envoy pass streams at the same time.
func streams(t *testing.T, envoy *envoytest.Envoy, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range streamsAtOnce {
		all.Go(func() {
			response, err := envoy.Post(ctx, "/v1/chat/completions", `{"model":"large-1","max_tokens":100}`, http.Header{"X-Api-Key": {fmt.Sprintf("%s-%d", key, i)}})
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = response.Body.Close() }()
			if answer, err := envoytest.Read(response); err != nil || strings.Count(string(answer.Body), "data: ") != streamEvents {
				t.Errorf("got %d, %d bytes and %v, want a stream of %d events", answer.Code, len(answer.Body), err, streamEvents)
			}
		})
	}
	all.Wait()
}

// withoutLua returns a copy of an Envoy file without its filters in Lua.
func withoutLua(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var config any
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.Marshal(dropLua(config)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "envoy_on_") {
		t.Fatalf("%s: some Lua is left", file)
	}
	path := filepath.Join(t.TempDir(), "without-lua.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// dropLua leaves filters in Lua out of lists, and the descriptors whose numbers come from them.
func dropLua(part any) any {
	switch part := part.(type) {
	case map[string]any:
		for key, value := range part {
			part[key] = dropLua(value)
		}
	case []any:
		kept := slices.DeleteFunc(part, func(p any) bool {
			m, _ := p.(map[string]any)
			config, _ := m["typed_config"].(map[string]any)
			return config["default_source_code"] != nil || m["hits_addend"] != nil
		})
		for i, p := range kept {
			kept[i] = dropLua(p)
		}
		return kept
	}
	return part
}
