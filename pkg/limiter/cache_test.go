package limiter

import (
	"testing"
	"time"
)

func cached(c *recordCache, refs ...Ref) (generation uint64, missing int) {
	g, m := c.lookup(time.UnixMilli(0), "ns", refs, make([]Record, len(refs)))
	return g, len(m)
}

func keep(c *recordCache, before, read uint64, refs ...Ref) {
	c.keep(time.UnixMilli(0), "ns", refs, make([]Record, len(refs)), before, read)
}

// A read that was under way when a change arrived may be older than the change.
func TestCacheForgetsReadsThatAChangeOvertook(t *testing.T) {
	c := newRecordCache(time.Minute, 10)
	before, _ := cached(c, EntityRef("a"))
	c.changed(Change{Namespace: "ns", Generation: 5, Refs: []Ref{EntityRef("a")}})
	keep(c, before, 4, EntityRef("a"))
	if _, missing := cached(c, EntityRef("a")); missing != 1 {
		t.Error("a read from before the change is used after it")
	}
	keep(c, 5, 4, EntityRef("a"))
	if _, missing := cached(c, EntityRef("a")); missing != 1 {
		t.Error("a read at an older generation than the newest change is used")
	}
	keep(c, 5, 5, EntityRef("a"))
	if g, missing := cached(c, EntityRef("a")); g != 5 || missing != 0 {
		t.Errorf("generation %d, %d missing", g, missing)
	}
}

// A read that is newer than all applied changes shows that one was missed, with unknown refs.
func TestCacheForgetsAllWhenItMissedAChange(t *testing.T) {
	c := newRecordCache(time.Minute, 10)
	keep(c, 0, 5, EntityRef("a"))
	c.keep(time.UnixMilli(0), "other", []Ref{EntityRef("a")}, make([]Record, 1), 0, 1)
	keep(c, 5, 7, EntityRef("b"))
	if g, missing := cached(c, EntityRef("a")); g != 7 || missing != 1 {
		t.Errorf("generation %d, %d missing: a was read at 5 and may have changed since", g, missing)
	}
	if _, missing := cached(c, EntityRef("b")); missing != 0 {
		t.Error("b was read at 7 and is missing")
	}
	if _, m := c.lookup(time.UnixMilli(0), "other", []Ref{EntityRef("a")}, make([]Record, 1)); len(m) != 0 {
		t.Error("another namespace's records are missing")
	}
}

func TestCacheChangeOfEverything(t *testing.T) {
	c := newRecordCache(time.Minute, 10)
	keep(c, 0, 5, EntityRef("a"), EntityRef("b"))
	c.changed(Change{Namespace: "ns", Generation: 6})
	if g, missing := cached(c, EntityRef("a"), EntityRef("b")); g != 6 || missing != 2 {
		t.Errorf("of the namespace: generation %d, %d missing", g, missing)
	}
	keep(c, 6, 6, EntityRef("a"))
	c.changed(Change{Generation: 9})
	if g, missing := cached(c, EntityRef("a")); g != 9 || missing != 1 {
		t.Errorf("of all namespaces: generation %d, %d missing", g, missing)
	}
}
