package limiter

import (
	"strings"
	"testing"
	"time"
)

// Clients choose the names: a cache must store a bounded part of each, and no two names may share
// an entry.
func TestCachesKeepLongNamesShort(t *testing.T) {
	const most = 2 << 10
	long := strings.Repeat("x", 1<<20)
	records, denials := newRecordCache(0, 0), newDenyCache(0, time.Second)
	now := time.UnixMilli(0)
	for _, name := range []string{long + "a", long + "b"} {
		refs := []Ref{EntityLimitsRef(name, name)}
		found := make([]Record, 1)
		if _, missing := records.lookup(now, "ns", refs, found); len(missing) == 0 {
			t.Error("another's record was found")
		}
		records.keep(now, "ns", refs, found, 0, 0)
		if _, missing := records.lookup(now, "ns", refs, found); len(missing) > 0 {
			t.Error("the record was not cached")
		}
		denials.learn(now, []Op{{Bucket: BucketKey{Namespace: "ns", Entity: name, Resource: name}, Spends: []Spend{{Limit: "l", Exceeded: true}}}})
	}
	for _, k := range records.records.Keys() {
		if n := len(k.ref.Entity) + len(k.ref.Resource); n > most {
			t.Errorf("a record's key holds %d bytes of names", n)
		}
	}
	if got := denials.entries.Len(); got != 2 {
		t.Errorf("%d denials cached, want 2", got)
	}
	for _, k := range denials.entries.Keys() {
		if n := len(k.bucket.Entity) + len(k.bucket.Resource); n > most {
			t.Errorf("a denial's key holds %d bytes of names", n)
		}
	}
	records.changed(Change{Namespace: "ns", Generation: 1, Refs: []Ref{EntityLimitsRef(long+"a", long+"a")}})
	for name, believed := range map[string]bool{long + "a": false, long + "b": true} {
		_, missing := records.lookup(now, "ns", []Ref{EntityLimitsRef(name, name)}, make([]Record, 1))
		if got := len(missing) == 0; got != believed {
			t.Errorf("a record that ends in %q after the first was changed: believed is %t, want %t", name[len(name)-1:], got, believed)
		}
	}
}
