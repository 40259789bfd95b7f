package migration

import "testing"

func TestParseKey(t *testing.T) {
	for _, tt := range []struct {
		pk, sk string
		want   key
	}{
		{"ENTITY#a", "#META", key{kind: entity, entity: "a"}},
		{"n/ENTITY#a", "#META", key{namespace: "n", kind: entity, entity: "a"}},
		{"n/ENTITY#a", "#CONFIG#gpt/4:x", key{namespace: "n", kind: entityLimits, entity: "a", resource: "gpt/4:x"}},
		{"ENTITY#a", "#BUCKET#gpt-4", key{kind: oldBucket, entity: "a", resource: "gpt-4"}},
		{"n/ENTITY#a", "#USAGE#gpt#2026-01", key{namespace: "n", kind: usage, entity: "a"}},
		{"RESOURCE#a/b", "#CONFIG", key{kind: resourceLimits, resource: "a/b"}},
		{"n/RESOURCE#a/b", "#CONFIG", key{namespace: "n", kind: resourceLimits, resource: "a/b"}},
		{"n/SYSTEM#", "#CONFIG", key{namespace: "n", kind: systemLimits}},
		{"n/SYSTEM#", "#RESOURCES", key{namespace: "n", kind: bookkeeping}},
		{"_/SYSTEM#", "#NSID#x1", key{namespace: "x1", kind: registry}},
		{"_/SYSTEM#", "#NAMESPACE#default", key{namespace: "_", kind: bookkeeping}},
		{"_/SYSTEM#", "#VERSION", key{namespace: "_", kind: bookkeeping}},
		{"n/BUCKET#a@b:c#gpt/4#12", "#STATE", key{namespace: "n", kind: bucket, entity: "a@b:c", resource: "gpt/4", shard: 12}},
		{"n/BUCKET#a#gpt#0", "#OP#1", key{namespace: "n", kind: bookkeeping}},
		{"n/AUDIT#$SYSTEM", "#AUDIT#1", key{namespace: "n", kind: audit}},
		{"n/BUCKET#a#gpt#-1", "#STATE", key{namespace: "n"}},
		{"n/BUCKET#a#gpt#b#0", "#STATE", key{namespace: "n"}},
		{"n/ENTITY#", "#META", key{namespace: "n"}},
		{"n/OTHER#a", "#META", key{namespace: "n"}},
		{"", "", key{}},
		{"n/x", "#META", key{}},
	} {
		if got := parseKey(tt.pk, tt.sk); got != tt.want {
			t.Errorf("%q, %q: got %+v, want %+v", tt.pk, tt.sk, got, tt.want)
		}
	}
}

// FuzzParseKey: no key makes it panic, and an accepted key has names.
func FuzzParseKey(f *testing.F) {
	f.Add("n/BUCKET#a#gpt#0", "#STATE")
	f.Add("n/ENTITY#a", "#CONFIG#r")
	f.Add("_/SYSTEM#", "#NSID#")
	f.Fuzz(func(t *testing.T, pk, sk string) {
		k := parseKey(pk, sk)
		switch k.kind {
		case entity:
			if k.entity == "" {
				t.Error("an entity without a name")
			}
		case entityLimits, bucket, oldBucket:
			if k.entity == "" || k.resource == "" || k.shard < 0 {
				t.Errorf("%+v", k)
			}
		case resourceLimits:
			if k.resource == "" {
				t.Error("a resource without a name")
			}
		case unknown, systemLimits, registry, usage, audit, bookkeeping:
		}
	})
}
