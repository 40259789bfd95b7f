package valkey

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// The places of a table are as many as its servers had at the start. Where another server answers at their address
// later, it has the table only if it is in a cluster as they were, or in none.
func TestServersOfAnotherKind(t *testing.T) {
	cluster, alone := valkeytest.StartCluster(t).Servers[0], valkeytest.Start(t)
	for name, tt := range map[string]struct{ began, now *valkeytest.Server }{
		"in no cluster any more": {cluster, alone}, "in a cluster": {alone, cluster},
	} {
		t.Run(name, func(t *testing.T) {
			slots := items.Slots("t")
			w := &way{Connection: Connection{Addresses: []string{tt.began.Address}}}
			had, err := w.connect(t.Context(), slots, nil, "")
			if err != nil {
				t.Fatal(err)
			}
			lost := ""
			if had.Addresses != nil {
				lost = had.Addresses[0]
			}
			w.Addresses, w.found = []string{tt.now.Address}, nil
			if got, err := w.connect(t.Context(), slots, had, lost); err == nil || got != had {
				t.Errorf("other servers are taken, with %d clients in the place of %d: %v", len(got.Clients), len(had.Clients), err)
			}
		})
	}
}
