//go:build race

package valkey_test

import "time"

// lateness is how long after its deadline a call may end.
const lateness = 5 * time.Second
