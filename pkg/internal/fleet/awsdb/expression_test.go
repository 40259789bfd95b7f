package awsdb_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/catalog"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
)

// write has a table and one item in it.
type write struct {
	*testing.T
	db  *dynamofake.DB
	key schema.Key
}

func newWrite(t *testing.T) *write {
	t.Helper()
	w := &write{T: t, db: dynamofake.New(), key: schema.EntityKey("AbCdEfGhIj0", "e")}
	if err := catalog.CreateTable(t.Context(), w.db, "limits"); err != nil {
		t.Fatal(err)
	}
	return w
}

// try makes a write. It returns the item that it leaves, or the item that a refusal
// shows.
func (w *write) try(e *schema.ItemWrite) (item map[string]types.AttributeValue, applied bool) {
	w.Helper()
	item, err := awsdb.ItemsOf(w.db, "limits").Write(context.WithoutCancel(w.Context()), e)
	if err == nil {
		return item, true
	}
	shown, refused := awsdb.ConditionItem(err)
	if !refused {
		w.Fatalf("Write: %v", err)
	}
	return shown, false
}

// want requires numbers of an item; -1 = the attribute is absent.
func (w *write) want(item map[string]types.AttributeValue, numbers map[string]int64) {
	w.Helper()
	for attr, n := range numbers {
		if n < 0 {
			if item[attr] != nil {
				w.Errorf("%s is %v, want none", attr, item[attr])
			}
			continue
		}
		r := schema.NewReader("limits", w.key, item)
		if got := r.Int(attr, 0, schema.MaxTime); got != n || r.Fault != nil {
			w.Errorf("%s is %d, %v; want %d", attr, got, r.Fault, n)
		}
	}
}

// The steps of a write are applied together, and a condition that does not hold
// shows the item and changes nothing.
func TestItemWrite(t *testing.T) {
	w := newWrite(t)
	number := schema.NumberAttribute[int]
	e := schema.NewUpdate(w.key)
	e.RequireAbsent(schema.AttrPK)
	e.Set("a", number(1))
	e.Set("gone", number(1))
	e.Add("b", 2)
	e.Add("zero", 0)
	item, applied := w.try(e)
	if !applied {
		t.Fatal("a new item is refused")
	}
	w.want(item, map[string]int64{"a": 1, "b": 2, "gone": 1, "zero": -1})
	if item, applied = w.try(e); applied {
		t.Error("the item was made again")
	}
	w.want(item, map[string]int64{"b": 2})

	e = schema.NewUpdate(w.key)
	e.Require("a", "=", number(1))
	e.Require("none", "<>", number(1)) // holds for an absent attribute
	e.Add("b", 3)
	e.Remove("gone")
	e.Remove("none")
	if item, applied = w.try(e); !applied {
		t.Error("conditions that hold are refused")
	}
	w.want(item, map[string]int64{"a": 1, "b": 5, "gone": -1})
}

// A number is raised, and never lowered.
func TestItemWriteRaisesOnly(t *testing.T) {
	w := newWrite(t)
	e := schema.NewUpdate(w.key)
	e.Set("n", schema.NumberAttribute(5))
	w.try(e)
	for _, tc := range []struct {
		to, left int64
		applied  bool
	}{{7, 7, true}, {7, 7, true}, {6, 7, false}} {
		e := schema.NewUpdate(w.key)
		e.RaiseTo("n", tc.to)
		item, applied := w.try(e)
		if applied != tc.applied {
			t.Errorf("raised to %d: applied = %t", tc.to, applied)
		}
		w.want(item, map[string]int64{"n": tc.left})
	}
}

// One of two puts of a new item is made, and the other gets the first item.
func TestPutNew(t *testing.T) {
	w := newWrite(t)
	item := w.key.Attributes()
	item["n"] = schema.NumberAttribute(1)
	if _, err := awsdb.ItemsOf(w.db, "limits").Write(t.Context(), schema.PutNew(item)); err != nil {
		t.Fatal(err)
	}
	_, err := awsdb.ItemsOf(w.db, "limits").Write(t.Context(), schema.PutNew(w.key.Attributes()))
	found, refused := awsdb.ConditionItem(err)
	if !refused {
		t.Fatalf("the second put got %v, want a refusal", err)
	}
	w.want(found, map[string]int64{"n": 1})
}

// A put that may replace an item makes a new one, too. It leaves an item alone for which one of its conditions does not
// hold.
func TestPutOrReplace(t *testing.T) {
	w := newWrite(t)
	try := func(n int) (shown map[string]types.AttributeValue, applied bool) {
		item := w.key.Attributes()
		item["n"], item["old"] = schema.NumberAttribute(n), schema.NumberAttribute(1)
		put := schema.PutOrReplace(item)
		put.RequirePresent("old")
		put.Require("n", "<", schema.NumberAttribute(n))
		put.Shows = true
		return w.try(put)
	}
	for _, tc := range []struct {
		n       int
		applied bool
	}{{2, true}, {2, false}, {3, true}, {1, false}} {
		if _, applied := try(tc.n); applied != tc.applied {
			t.Errorf("a put of %d: applied = %t", tc.n, applied)
		}
	}
	e := schema.NewUpdate(w.key)
	e.Remove("old")
	w.try(e)
	if shown, applied := try(4); applied {
		t.Error("an item without an attribute is replaced that has to be there")
	} else {
		w.want(shown, map[string]int64{"n": 3})
	}
}
