package embedded

import (
	"slices"
	"sync"

	"github.com/ratelimit/ratelimit/pkg/embedded/datafile"
)

// secrets are the secrets of a store, by name.
type secrets struct {
	mu     sync.Mutex
	byName map[string][]byte // nil = closed
}

func (k *secrets) init() { k.byName = make(map[string][]byte) }

func (k *secrets) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byName = nil
}

// load reads the secrets.
func (k *secrets) load(tx *datafile.Tx) error {
	return tx.Each(datafile.Meta, []byte(secretPrefix), func(key, value []byte) error {
		k.byName[string(key[len(secretPrefix):])] = slices.Clone(value)
		return nil
	})
}
