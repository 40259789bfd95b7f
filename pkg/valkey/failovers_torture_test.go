//go:build torture

package valkey_test

import "time"

// failovers is how many there are of each kind.
const failovers = 20

// longHang is the longest time for which a server stands still.
const longHang = 10 * time.Second
