//go:build !race

package valkey_test

import "time"

// lateness is how long after its deadline a call may end, beside other tests on two processors. TestFailover
// and TestHang are run with it; the race detector makes calls slow.
const lateness = time.Second
