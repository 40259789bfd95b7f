package fleet_test

import (
	"os"
	"testing"
)

// The test binary is also each of the replicas that it starts.
func TestMain(m *testing.M) {
	if j := os.Getenv(jobVariable); j != "" {
		os.Exit(work(j))
	}
	os.Exit(m.Run()) // each test has a server of its own: tables of others would make it slow
}
