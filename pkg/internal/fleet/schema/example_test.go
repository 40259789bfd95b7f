package schema_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The key of a record is one to one for names of any bytes, and a record reads as it was
// written.
func Example() {
	const ns = "AbCdEfGhIj0"
	e := limiter.Entity{ID: "org/acme", Parent: "org", Version: 3}
	item := schema.EntityItem(ns, limiter.Record{Entity: &e})
	key, err := schema.ItemKey("ratelimit", item)
	fmt.Println(key, err)

	stored, err := schema.ParseRecord("ratelimit", ns, limiter.EntityRef(e.ID), item)
	fmt.Println(stored.Record.Entity.Parent, stored.Generation, err)

	delete(item, schema.AttrEntityVersion)
	_, err = schema.ParseRecord("ratelimit", ns, limiter.EntityRef(e.ID), item)
	fmt.Println(err)
	// Output:
	// PK="AbCdEfGhIj0/ENTITY#org%2Facme" SK="#META" <nil>
	// org 3 <nil>
	// item PK="AbCdEfGhIj0/ENTITY#org%2Facme" SK="#META" of table ratelimit is corrupt: attribute version is missing; it must be a number
}
