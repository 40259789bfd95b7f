package limiter

import (
	"errors"
	"testing"
	"time"
)

// The edits of a namespace with a transition are allowed, and no others. A purge that began cannot
// be undone.
func TestStatesOfNamespaces(t *testing.T) {
	now := time.UnixMilli(1_760_000_000_123)
	refused := NamespaceState(99)
	limits, err := NewLimits(PerDay("l", 1))
	if err != nil {
		t.Fatal(err)
	}
	for s, want := range map[Switch][4]NamespaceState{ // from active, deleted, purging, purged
		CreateNamespace:  {NamespaceActive, refused, refused, NamespaceActive},
		DeleteNamespace:  {NamespaceDeleted, NamespaceDeleted, refused, refused},
		RecoverNamespace: {NamespaceActive, NamespaceActive, refused, refused},
		BeginPurge:       {refused, NamespacePurging, NamespacePurging, NamespacePurging},
		EndPurge:         {refused, refused, NamespacePurged, NamespacePurged},
	} {
		for from := NamespaceActive; from <= NamespacePurged; from++ {
			before := Record{Limits: limits, OnUnavailable: Deny, Disabled: true, State: from, Since: now.Add(-time.Hour)}
			after, err := Edit{Ref: SystemLimitsRef(), Switch: s}.Apply(t.Context(), now, from, before)
			if want[from] == refused {
				if !errors.Is(err, ErrState) {
					t.Errorf("switch %d of a namespace that is %s: %+v, %v; want %v", s, from, after, err, ErrState)
				}
				continue
			}
			if err != nil || after.State != want[from] || !after.Disabled || from == want[from] && after.Since != before.Since {
				t.Errorf("switch %d of a namespace that is %s: %+v, %v; want it %s", s, from, after, err, want[from])
			}
			if gone := from != want[from] && want[from] == NamespacePurging; gone != (after.Limits == nil) {
				t.Errorf("switch %d of a namespace that is %s: limits %v", s, from, after.Limits)
			}
			if from != want[from] && after.Since.IsZero() != (want[from] == NamespaceActive) {
				t.Errorf("switch %d of a namespace that is %s: since %v", s, from, after.Since)
			}
		}
		for _, ref := range []Ref{EntityRef("e"), ResourceLimitsRef("r"), EntityLimitsRef("e", "r")} {
			if _, err := (Edit{Ref: ref, Switch: s}).Apply(t.Context(), now, NamespaceActive, Record{}); !errors.Is(err, ErrInvalid) {
				t.Errorf("switch %d of %+v: error %v, want %v", s, ref, err, ErrInvalid)
			}
		}
	}
}
