package limiter_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"namespace", "rate", "max_connection_age", "Shop"}
	for name, want := range map[string]string{
		"namespce": "namespace", "NAMESPACE": "namespace", "namesapce": "namespace", "rat": "rate", "raet": "rate",
		"max_connectoin_age": "max_connection_age", "shop": "Shop", "limit": "", "": "", "x": "",
		strings.Repeat("x", 1<<20): "",
	} {
		if got := limiter.ClosestName(name, known); got != want {
			t.Errorf("Closest(%.20q) = %q, want %q", name, got, want)
		}
	}
}

func TestLongNamesTakeNoMemory(t *testing.T) {
	known := slices.Repeat([]string{strings.Repeat("KNOWN", 1000)}, 1000)
	name := strings.Repeat("X", 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	limiter.ClosestName(name, known)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d KiB are allocated, want 1024 at most", got>>10)
	}
}

func ExampleClosestName() {
	fmt.Println(limiter.ClosestName("domain", []string{"domains", "limits"}))
	// Output: domains
}

func TestMisspelled(t *testing.T) {
	known := []string{"gpt-4", "org/acme", "user/ada"}
	for name, want := range map[string]string{
		"gpt4": "gpt-4", "GPT-4": "gpt-4", "org/acmee": "org/acme", "org/amce": "org/acme", "user/adb": "user/ada",
		"gpt-5": "", "gpt-45": "", "org/acme2": "", "gpt-4": "", "user/bob": "", "": "",
	} {
		if got := limiter.Misspelled(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
