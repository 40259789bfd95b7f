package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// nameChecks are about names that could be confused with others.
func nameChecks() []check {
	return []check{
		{name: "names/entities", run: checkNames(func(k *limiter.BucketKey, name string) { k.Entity = name })},
		{name: "names/resources", run: checkNames(func(k *limiter.BucketKey, name string) { k.Resource = name })},
		{name: "names/namespaces", run: checkNames(func(k *limiter.BucketKey, name string) { k.Namespace = name })},
		{name: "names/parts swapped", run: checkSwappedParts},
		{name: "names/variants", run: checkVariants},
		{name: "names/records", run: checkRecordNames},
		{name: "names/memory of the caller", run: checkCallersMemory},
	}
}

// hostileNames returns names that a store must all distinguish.
func hostileNames() []string {
	kib3 := strings.Repeat("k", 3<<10)
	mib := strings.Repeat("m", 1<<20)
	names := []string{
		"user", "User", "USER", " user", "user ", "  user", "user  ", "\tuser", "user\t", "user\n", "user\r\n", "\nuser",
		"", " ", "\x00", "\x00\x00", "user\x00", "\x00user", "us\x00er", "us", "\n",
		"café", "cafe\u0301", "cafe", "CAFÉ", "ﬁ", "fi", "ß", "ss", "ẞ", "İ", "i", "ı", "I", "\u212a", "k", "K", "Å", "\u212b", "A\u030a",
		"user\u200b", "\ufeffuser", "us\u00ader", "\u202euser", "\xff", "\xfe", "k\xff", "k\xfe", "k\ufffd", "k\xef\xbf", "\xc0\xaf", "\xed\xa0\x80",
		"#", "##", "/", "//", "%", "%%", "%23", "%2F", "%2f", "%25", "%252F", "%00", "user%00", "user%20", "user+", "+", "|", ":", "~", "=", ",", ";", `"`, `\`, `\x00`, "'", "*", "?", "..", ".", "../user", "user/", "/user", "user#", "#user",
		"user#r", "user/r", "ENTITY#user", "BUCKET#user#r#0", "default/ENTITY#user", "#META", "#STATE", "_default_", "default", "SYSTEM#",
		"0", "00", "1", "-1", "true", "null", "nil", "\u0660",
		kib3, kib3 + "k", kib3[:len(kib3)-1] + "K", kib3[:len(kib3)-1] + " ", kib3 + " ", mib, mib + "m", mib[:len(mib)-1] + "n",
	}
	return slices.Concat(names, storedForms(kib3))
}

// storedForms returns names that equal the possible stored form of a long one: a prefix of it and a
// hash.
func storedForms(long string) []string {
	sum := sha256.Sum256([]byte(long))
	raw, hexed := string(sum[:]), hex.EncodeToString(sum[:])
	seps := []string{"", "#", "~", "-", "…", "%", "."}
	lengths := []int{16, 32, 64, 100, 128, 136, 168, 192, 193, 200, 224, 256}
	forms := make([]string, 0, 6+len(lengths)*(len(seps)+2))
	forms = append(forms, raw, hexed, strings.ToUpper(hexed), hexed[:32], hexed[:16], url.PathEscape(raw))
	for _, n := range lengths {
		for _, sep := range seps {
			forms = append(forms, long[:n]+sep+hexed)
		}
		forms = append(forms, long[:n], long[:n]+raw)
	}
	return forms
}

// checkNames drains the buckets of all names, one after the other: each is full before its turn,
// and empty afterwards.
func checkNames(set func(*limiter.BucketKey, string)) func(T, limiter.Store) {
	return func(t T, s limiter.Store) {
		c := newClient(t, s)
		op := c.one("victim", limiter.PerDay("l", 2), limiter.Spend{Take: tokens(2)})
		names := hostileNames()
		drained := make(map[string]bool, len(names))
		for _, name := range names {
			if drained[name] {
				t.Fatalf("the case has the name %q twice", cut(name))
			}
			drained[name] = true
			set(&op.Bucket, name)
			if !c.take(0, op) {
				t.Errorf("the bucket of %q (%d bytes) was drained through another name", cut(name), len(name))
			}
		}
		for _, name := range names {
			set(&op.Bucket, name)
			if c.take(0, op) {
				t.Errorf("the bucket of %q (%d bytes) is full again", cut(name), len(name))
			}
		}
	}
}

// checkSwappedParts: no part of a key reaches into the next.
func checkSwappedParts(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("", limiter.PerDay("l", 2), limiter.Spend{Take: tokens(2)})
	op.Bucket = limiter.BucketKey{}
	drained := make(map[limiter.BucketKey]bool)
	for _, sep := range []string{"#", "/", "\x00", "%", "%23", "|", ":", ",", " ", "~", "\n", ""} {
		for _, parts := range [][3]string{
			{"a", "b", "c"},
			{"a" + sep + "b", "", "c"},
			{"a", "b" + sep + "c", ""},
			{"", "a", "b" + sep + "c"},
			{"", "a" + sep + "b", "c"},
			{"a" + sep + "b", "c", ""},
			{"", "", "a" + sep + "b" + sep + "c"},
			{"a" + sep + "b" + sep + "c", "", ""},
			{"", "a" + sep + "b" + sep + "c", ""},
			{"a", sep + "b", "c"},
			{"a", "b" + sep, "c"},
			{"a", "b", sep + "c"},
			{"a" + sep, "b", "c"},
			{"c", "b", "a"},
			{"b", "a", "c"},
			{"a", "c", "b"},
		} {
			key := limiter.BucketKey{Namespace: parts[0], Entity: parts[1], Resource: parts[2]}
			if drained[key] {
				continue
			}
			drained[key] = true
			op.Bucket = key
			if !c.take(0, op) {
				t.Errorf("the bucket of %q was drained through another key", parts)
			}
		}
	}
}

// checkVariants: variants of a bucket are separate buckets, also from names that look like them.
func checkVariants(t T, s limiter.Store) {
	c := newClient(t, s)
	op := c.one("user", limiter.PerDay("l", 2), limiter.Spend{Take: tokens(2)})
	hash := op.Limits.Hash()
	drained := make(map[limiter.BucketKey]bool)
	for _, variant := range []uint64{0, 1, 2, hash, hash + 1, 1 << 32, 1 << 63, 1<<64 - 1} {
		for _, resource := range []string{"r", fmt.Sprint("r", variant), fmt.Sprintf("r#%d", variant), fmt.Sprintf("r#%x", variant), fmt.Sprintf("r/%016x", variant)} {
			op.Bucket.Variant, op.Bucket.Resource = variant, resource
			if !drained[op.Bucket] {
				drained[op.Bucket] = true
				c.want(true, 0, op)
				c.want(false, 0, op)
			}
		}
	}
}

// checkRecordNames: every name has records of its own.
func checkRecordNames(t T, s limiter.Store) {
	c := newClient(t, s)
	names := hostileNames()
	refs := make([]limiter.Ref, 1, 1+3*len(names))
	refs[0] = limiter.SystemLimitsRef()
	for _, name := range names {
		refs = append(refs, limiter.ResourceLimitsRef(name), limiter.EntityLimitsRef(name, "r"), limiter.EntityLimitsRef("user", name+"/"))
	}
	for i, ref := range refs {
		c.putLimits("ns", ref, limiter.PerDay("l", int64(i+1)))
	}
	for i, r := range c.read("ns", refs...) {
		if r.Limits.Len() != 1 || r.Limits.At(0).Capacity != int64(i+1) {
			t.Errorf("the limits of %+v were replaced through another name", limiter.Ref{Kind: refs[i].Kind, Entity: cut(refs[i].Entity), Resource: cut(refs[i].Resource)})
		}
	}
	var entities []limiter.Ref
	for i, name := range names {
		if name != "" {
			c.putEntity("ns", limiter.Entity{ID: name, Name: strconv.Itoa(i)})
			entities = append(entities, limiter.EntityRef(name))
		}
	}
	for i, r := range c.read("ns", entities...) {
		if r.Entity == nil || r.Entity.ID != entities[i].Entity {
			t.Errorf("the entity %q was replaced through another name", cut(entities[i].Entity))
		}
	}
	for _, namespace := range []string{"NS", "ns ", " ns", "n", "ns/", "ns#", "ns\x00", "", "default"} {
		for i, r := range c.read(namespace, append(refs, entities...)...) {
			if !r.Empty() {
				t.Fatalf("namespace %q has record %d of another namespace", namespace, i)
			}
		}
	}
}

// checkCallersMemory: a store keeps no string that shares memory with the caller's, which may reuse
// that memory for the next message.
func checkCallersMemory(t T, s limiter.Store) {
	c := newClient(t, s)
	message := []byte("namespace entity-1 resource another-parent")
	alias := func(from, to int) string { return unsafe.String(&message[from], to-from) } // #nosec G103 -- the subject of the case
	op := c.one("", limiter.PerDay("l", 2), limiter.Spend{Take: tokens(2)})
	op.Bucket = limiter.BucketKey{Namespace: alias(0, 9), Entity: alias(10, 18), Resource: alias(19, 27)}
	c.want(true, 0, op)
	c.putLimits(alias(0, 9), limiter.EntityLimitsRef(alias(10, 18), alias(19, 27)), limiter.PerDay("l", 7))
	c.putEntity(alias(0, 9), limiter.Entity{ID: alias(10, 18), Name: alias(10, 18), Parent: alias(28, 42)})
	for i := range message {
		message[i] = 'x'
	}
	op.Bucket = limiter.BucketKey{Namespace: "namespace", Entity: "entity-1", Resource: "resource"}
	c.want(false, 0, op)
	got := c.read("namespace", limiter.EntityRef("entity-1"), limiter.EntityLimitsRef("entity-1", "resource"))
	if e := got[0].Entity; e == nil || e.ID != "entity-1" || e.Name != "entity-1" || e.Parent != "another-parent" {
		t.Errorf("the entity changed with the caller's memory: %+v", e)
	}
	if got[1].Limits.Len() != 1 {
		t.Errorf("the limits are missing, or have another name")
	}
}
