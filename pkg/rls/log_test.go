package rls_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Calls that fail at the same time make one line for each kind, with the count of that kind.
func TestKindsOfTroubleHideNoOthers(t *testing.T) {
	t.Parallel()
	e, log := newLogged(t)
	calls := []string{
		`{"descriptors":[` + descriptorJSON(``, "user", "ada") + `]}`, // without a domain
		`{"domain":"shop"}`, // without descriptors
	}
	said := func() map[string]any {
		all := map[string]any{}
		for _, line := range lines(t, log) {
			all[line["error"].(string)] = line["suppressed"]
		}
		return all
	}
	const noDomain = "domain is empty: set domain in the gateway's rate limit configuration"
	const noDescriptors = "no descriptors: the gateway must send at least one"
	for second, want := range []map[string]any{
		{noDomain: 0.0, noDescriptors: 0.0},
		{noDomain: 2.0, noDescriptors: 0.0},
	} {
		for i := range 3 {
			for j, call := range calls {
				if i == 0 || j == 0 { // three without a domain, one without descriptors
					_, _ = e.ask(t, call)
				}
			}
		}
		if diff := cmp.Diff(want, said()); diff != "" {
			t.Errorf("second %d (-want +got)\n%s", second, diff)
		}
		e.clock.advance(time.Second)
	}
}
