//go:build !race

package controlapi_test

import (
	"fmt"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin/controlapi"
)

// An event allocates nothing once the memory is full, also one of a new key.
func TestAddDoesNotAllocate(t *testing.T) {
	c, now := controlapi.NewTopCounter(), start()
	keys := make([]controlapi.TopKey, 20_000)
	for i := range keys {
		keys[i] = key(fmt.Sprint("entity", i+100_000))
		c.Add(now, keys[i], 1)
		c.Add(now.Add(controlapi.TopWindow), keys[i], 1)
	}
	i := 0
	if got := testing.AllocsPerRun(10_000, func() {
		c.Add(now.Add(controlapi.TopWindow), keys[i%len(keys)], 1)
		i++
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
