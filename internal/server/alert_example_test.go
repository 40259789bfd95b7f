package server

import (
	"fmt"
)

// A receiver computes the signature of a call by itself, and compares it with that of the header.
func ExampleSign() {
	key, body := []byte("32 random bytes, which both know"), []byte(`{"id":"…"}`)
	fmt.Println("v1=" + SignAlert(key, "1793491200", body))
	// Output: v1=7e36822265272a3cbc7959b05a4e450748d989d58192539df8e2769cff66ac98
}
