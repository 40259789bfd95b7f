package schema_test

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

// try sends an expression. It returns the item that it leaves, or the item that a refusal
// shows.
func (w *write) try(e *schema.Expression) (item map[string]types.AttributeValue, applied bool) {
	w.Helper()
	out, err := w.db.UpdateItem(context.WithoutCancel(w.Context()), e.Input("limits", w.key))
	if err == nil {
		return out.Attributes, true
	}
	item, refused := awsdb.ConditionItem(err)
	if !refused {
		w.Fatalf("UpdateItem: %v", err)
	}
	return item, false
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

// The sections of an expression are applied together, and a condition that does not hold
// shows the item and changes nothing.
func TestExpression(t *testing.T) {
	w := newWrite(t)
	number := schema.NumberAttribute[int]
	e := schema.NewExpression()
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

	e = schema.NewExpression()
	e.Require("a", "=", number(1))
	e.Require("none", "<>", number(1)) // holds for an absent attribute
	e.SetDifference("c", 10, "b")
	e.Add("b", 3)
	e.Remove("gone")
	e.Remove("none")
	if item, applied = w.try(e); !applied {
		t.Error("conditions that hold are refused")
	}
	w.want(item, map[string]int64{"a": 1, "b": 5, "c": 8, "gone": -1})
}

// A number is raised, and never lowered.
func TestExpressionRaisesOnly(t *testing.T) {
	w := newWrite(t)
	e := schema.NewExpression()
	e.Set("n", schema.NumberAttribute(5))
	w.try(e)
	for _, tc := range []struct {
		to, left int64
		applied  bool
	}{{7, 7, true}, {7, 7, true}, {6, 7, false}} {
		e := schema.NewExpression()
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
	if _, err := w.db.PutItem(t.Context(), schema.PutNew("limits", item)); err != nil {
		t.Fatal(err)
	}
	_, err := w.db.PutItem(t.Context(), schema.PutNew("limits", w.key.Attributes()))
	found, refused := awsdb.ConditionItem(err)
	if !refused {
		t.Fatalf("the second put got %v, want a refusal", err)
	}
	w.want(found, map[string]int64{"n": 1})
}
