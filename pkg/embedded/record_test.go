package embedded

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/recordtest"
)

// anyRecord draws an entity, or limits.
func anyRecord(t *rapid.T) (recordID, limiter.Record) {
	k := recordID{Namespace: recordtest.Names().Draw(t, "namespace")}
	id, resource := recordtest.Names().Draw(t, "entity"), recordtest.Names().Draw(t, "resource")
	disabled := rapid.Bool().Draw(t, "disabled")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 4:
		k.Ref = limiter.EntityRef(id)
		return k, limiter.Record{Disabled: true}
	case 0:
		k.Ref = limiter.EntityRef(id)
		return k, limiter.Record{Disabled: disabled, Entity: &limiter.Entity{
			ID: id, Name: recordtest.Names().Draw(t, "name"), Parent: recordtest.Names().Draw(t, "parent"), Cascade: rapid.Bool().Draw(t, "cascade"),
			Version: rapid.Uint64().Draw(t, "version"), Metadata: rapid.MapOfN(recordtest.Names(), recordtest.Names(), 0, 3).Draw(t, "metadata"),
			CreatedAt: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "created"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")),
		}}
	case 1:
		k.Ref = limiter.EntityLimitsRef(id, resource)
	case 2:
		k.Ref = limiter.ResourceLimitsRef(resource)
	default:
		k.Ref = limiter.SystemLimitsRef()
		r := limiter.Record{Disabled: disabled, Limits: recordtest.Limits(0).Draw(t, "limits"), OnUnavailable: limiter.Policy(rapid.ByteRange(0, byte(limiter.Local)).Draw(t, "policy"))}
		r.Budgets = someBudgets(t, r.Limits)
		r.State = limiter.NamespaceState(rapid.ByteRange(0, byte(limiter.NamespacePurged)).Draw(t, "state"))
		if r.State != limiter.NamespaceActive {
			r.Since = time.UnixMilli(rapid.Int64Range(-1<<40, 1<<42).Draw(t, "since")).UTC()
		}
		return k, r
	}
	r := limiter.Record{Limits: recordtest.Limits(1).Draw(t, "limits")}
	r.Budgets = someBudgets(t, r.Limits)
	return k, r
}

// someBudgets draws budgets of limits.
func someBudgets(t *rapid.T, limits *limiter.Limits) *limiter.Budgets {
	var all []limiter.Budget
	for i := range limits.Len() {
		for _, w := range limiter.UsageWindows() {
			if !limits.Unlimited(i) && rapid.IntRange(0, 3).Draw(t, "budget") == 0 {
				all = append(all, limiter.Budget{Limit: limits.At(i).Name, Window: w, Tokens: rapid.Int64Range(1, limiter.MaxTokens).Draw(t, "budget's tokens")})
			}
		}
	}
	budgets, err := limiter.NewBudgets(all...)
	if err != nil {
		t.Fatal(err)
	}
	return budgets
}

func TestRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, want := anyRecord(t)
		if want.Disabled && rapid.Bool().Draw(t, "recorded") {
			want.Disabling = &limiter.Disabling{
				Since: time.UnixMilli(rapid.Int64Range(-1<<40, 1<<42).Draw(t, "disabled since")).UTC(),
				By:    recordtest.Names().Draw(t, "by"), Reason: recordtest.Names().Draw(t, "reason"),
			}
		}
		key, head := keyOf(k.Identity())
		value := appendRecord(head, want)
		gotKey, got, err := parseRecord(key, value)
		if err != nil || gotKey != k {
			t.Fatalf("got %+v, %v; want %+v", gotKey, err, k)
		}
		if diff := cmp.Diff(want, got, sameLimits(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		recordtest.RefusesDamage(t, value, errFormat, func(v []byte) error { _, _, err := parseRecord(key, v); return err })
	})
}

// sameLimits compares limits by their contents.
func sameLimits() cmp.Option {
	return cmp.Comparer(func(a, b *limiter.Limits) bool { return a.Hash() == b.Hash() || a.Len()+b.Len() == 0 })
}

func TestEventsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := limiter.AuditEvent{
			Time:   time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "time")).UTC(),
			Action: recordtest.Names().Draw(t, "action"), Detail: recordtest.Names().Draw(t, "detail"), Generation: rapid.Uint64().Draw(t, "generation"),
			Subject: limiter.Ref{Kind: limiter.RefKind(rapid.ByteRange(0, byte(limiter.RefSystemLimits)).Draw(t, "kind")), Entity: recordtest.Names().Draw(t, "entity"), Resource: recordtest.Names().Draw(t, "resource")},
		}
		want.ID = limiter.AuditID(want.Time, want.Generation)
		want.Principal, want.Reason = recordtest.Names().Draw(t, "principal"), recordtest.Names().Draw(t, "reason")
		if want.Subject.Kind == limiter.RefEntity {
			want.Before.Entity = &limiter.Entity{ID: want.Subject.Entity, Name: recordtest.Names().Draw(t, "name"), CreatedAt: want.Time, Version: 7}
		} else {
			want.Before.Limits, want.After.Limits = recordtest.Limits(1).Draw(t, "before"), recordtest.Limits(1).Draw(t, "after")
		}
		value := appendEvent(nil, &want)
		got, err := parseEvent(value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, sameLimits()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		recordtest.RefusesDamage(t, value, errFormat, func(v []byte) error { _, err := parseEvent(v); return err })
	})
}

// No two identities share a key, and none is read as another.
func TestIdentities(t *testing.T) {
	seen := map[string]string{}
	for _, identity := range []string{"", "a", string(make([]byte, longestKey)), string(make([]byte, longestKey+1)), string(append([]byte{hashed}, make([]byte, 32)...))} {
		key, head := keyOf([]byte(identity))
		if other, found := seen[string(key)]; found || len(key) > longestKey {
			t.Errorf("identities of %d and %d bytes share a key of %d", len(identity), len(other), len(key))
		}
		seen[string(key)] = identity
		got, rest, ok := identityOf(key, append(head, "value"...))
		if len(identity) == 33 { // as no identity begins, and as keys that are hashes do
			if ok {
				t.Errorf("a key that is no hash of what the record says passes")
			}
			continue
		}
		if !ok || string(got) != identity || string(rest) != "value" {
			t.Errorf("identity of %d bytes: got one of %d bytes, %t, value %q", len(identity), len(got), ok, rest)
		}
	}
}
