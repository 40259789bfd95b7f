package embedded

import (
	"strings"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// change is a record to write; a nil value deletes it.
type change struct {
	table datafile.Table
	key   []byte
	value []byte
}

func (c *change) apply(tx *datafile.Tx) error {
	if c.value == nil {
		return tx.Delete(c.table, c.key)
	}
	return tx.Put(c.table, c.key, c.value)
}

// Keys of datafile.Meta.
const (
	metaRunning    = "running"    // present from the open of the store to its clean shutdown
	metaGeneration = "generation" // of the catalog
	secretPrefix   = "secret/"
)

// sweptRows keeps the commit that deletes them short.
const sweptRows = 2000

// inUse returns the change that records a namespace as used. The key is its name with its length in
// front. The value is its name with a dot at the end, so no value is empty.
func inUse(namespace string) change {
	key, _ := keyOf(appendText(nil, namespace))
	return change{datafile.Namespaces, key, []byte(namespace + ".")}
}

func namespaceIn(value []byte) string { return strings.TrimSuffix(string(value), ".") }
