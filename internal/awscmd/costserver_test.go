package awscmd

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// The constants are those of the pages that have the measurements.
func TestServerFollowsPages(t *testing.T) {
	memory, measured := docsPage(t, "valkey.md"), docsPage(t, "benchmarks.md")
	for _, want := range []string{
		fmt.Sprintf("about %g KB, with its entity and its indexes", serverBucketBytes/1000.0),
		fmt.Sprintf("%g KB for each entity, resource and window", serverUsageBytes/1000.0),
		"hours are kept for 2 days, days for 35 and months for 400",
		fmt.Sprintf("%.0f KB of usage in the end", serverUsageBytes*serverUsageWindows/1000.0),
	} {
		if !strings.Contains(memory, want) {
			t.Errorf("docs/valkey.md does not say %q", want)
		}
	}
	sizing := docsPage(t, "how-to/sizing.md")
	for _, want := range []string{
		fmt.Sprintf("up to %.0f µs of the server's one thread", messageSeconds*1e6), fmt.Sprintf("some %.0f,000 calls a second on quiet buckets", busyServer/messageSeconds/1000),
	} {
		if !strings.Contains(sizing, want) {
			t.Errorf("docs/how-to/sizing.md does not say %q", want)
		}
	}
	most := 0.0
	for _, row := range regexp.MustCompile(`\| 10,000 cold keys \|(?:[^|]*\|){6} ([\d.]+) \|`).FindAllStringSubmatch(measured, -1) {
		micros, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, micros)
	}
	if math.Abs(most-messageSeconds*1e6) > 1e-9 {
		t.Errorf("docs/benchmarks.md has at most %g µs for a cold key, the model %g", most, messageSeconds*1e6)
	}
}

// docsPage returns a page of docs without its line breaks.
func docsPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// A server gets as many messages for quiet buckets as the model says, and its memory grows by as much,
// within a fifth.
func TestServerIsMeasured(t *testing.T) {
	const keys, windows = 2000, 3 // an hour, a day, a month
	server := valkeytest.Start(t)
	want := estimateServer(quiet(keys, keys), true)
	messages, buckets := measureServer(t, server, keys, true)
	if messages < want.Messages || messages > 1.05*want.Messages {
		t.Errorf("the server got %g messages, the model says %g", messages, want.Messages)
	}
	if buckets < want.BucketBytes/1.2 || buckets > 1.2*want.BucketBytes {
		t.Errorf("buckets take %g bytes, the model says %g", buckets, want.BucketBytes)
	}
	_, all := measureServer(t, server, keys, false)
	usage, most := all-buckets, want.UsageBytes/serverUsageWindows*windows
	if usage < most/1.2 || usage > 1.2*most {
		t.Errorf("usage takes %g bytes, the model says %g", usage, most)
	}
}

// measureServer takes from quiet buckets in a table of their own, and returns the messages that the
// server got and the memory that it took.
func measureServer(t *testing.T, server *valkeytest.Server, keys int, noUsage bool) (messages, memory float64) {
	t.Helper()
	store, err := valkey.Open(t.Context(), valkey.Config{
		Connection: valkey.Connection{Addresses: []string{server.Address}}, Name: fmt.Sprintf("table-%t", noUsage), Create: true, Leases: true, NoUsage: noUsage,
		Attempt: 20 * time.Second, Budget: time.Minute, // a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 10), limiter.PerMinute("tpm", 1000))
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys + 1 {
		if i == 1 { // the scripts and the namespace are there then
			messages, memory = float64(server.Scripts()), server.Info("memory", "used_memory:")
		}
		op := limiter.Op{
			Bucket: limiter.BucketKey{Namespace: "default", Entity: fmt.Sprint("key/customer-", i), Resource: "gpt-4"}, Limits: limits,
			Spends: []limiter.Spend{{Limit: "rpm", Take: limiter.Milli}, {Limit: "tpm", Take: limiter.Milli}},
		}
		if ok, err := store.Take(t.Context(), time.Now(), []limiter.Op{op}); !ok || err != nil {
			t.Fatalf("take: %t, %v", ok, err)
		}
	}
	return float64(server.Scripts()) - messages, server.Info("memory", "used_memory:") - memory
}

func TestEstimateServer(t *testing.T) {
	hot := quiet(10_000, 10)
	hot.HotKeys, hot.HotShare, hot.OverLimit = 10, 1, 1
	single := quiet(1000, 1000)
	single.Leases = false
	parents := quiet(1000, 1000)
	parents.Levels, parents.Settled = 2, 0.5
	for name, tt := range map[string]struct {
		traffic  costTraffic
		messages float64
	}{
		"quiet buckets":         {quiet(1000, 1000), 1000},
		"without leases":        {single, 1000},
		"busy ones over limits": {hot, 10 * 3 * 3},
		"a level, and settled":  {parents, 2000 + 500*3},
		"no calls":              {quiet(0, 1), 0},
	} {
		e := estimateServer(tt.traffic, true)
		if math.Abs(e.Messages-tt.messages) > 1e-9 || math.Abs(e.Processor-tt.messages*messageSeconds) > 1e-9 {
			t.Errorf("%s: %+v, want %g messages", name, e, tt.messages)
		}
		buckets := tt.traffic.Keys * tt.traffic.Levels
		if e.BucketBytes != buckets*2500 || e.UsageBytes != buckets*96*2100 {
			t.Errorf("%s: %+v, want the memory of %g buckets", name, e, buckets)
		}
	}
}
