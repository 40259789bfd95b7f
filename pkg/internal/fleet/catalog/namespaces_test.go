package catalog

import (
	"strconv"
	"sync"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// All callers that meet a namespace at once get the same one: its changes are
// serialised by it.
func TestNamespaceIsOpenedOnce(t *testing.T) {
	c := newTestCatalog(t, dynamofake.New())
	const callers, rounds = 16, 300
	for round := range rounds {
		name := strconv.Itoa(round)
		var got [callers]*space
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				sp, err := c.use(t.Context(), name)
				if err != nil {
					t.Error(err)
				}
				got[i] = sp
			})
		}
		wg.Wait()
		for _, sp := range got {
			if sp != got[0] {
				t.Fatalf("round %d: the namespace was opened twice", round)
			}
		}
	}
}
