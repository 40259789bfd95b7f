package nearname_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/nearname"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	known := []string{"namespace", "rate", "max_connection_age", "Shop"}
	for name, want := range map[string]string{
		"namespce": "namespace", "NAMESPACE": "namespace", "namesapce": "namespace", "rat": "rate", "raet": "rate",
		"max_connectoin_age": "max_connection_age", "shop": "Shop", "limit": "", "": "", "x": "",
		strings.Repeat("x", 1<<20): "",
	} {
		if got := nearname.Closest(name, known); got != want {
			t.Errorf("Closest(%.20q) = %q, want %q", name, got, want)
		}
	}
}

func ExampleClosest() {
	fmt.Println(nearname.Closest("domain", []string{"domains", "limits"}))
	// Output: domains
}
