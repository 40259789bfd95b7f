package fleet_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
)

// The test binary is also each of the replicas that it starts.
func TestMain(m *testing.M) {
	if j := os.Getenv(jobVariable); j != "" {
		os.Exit(work(j))
	}
	os.Exit(dynamotest.Main(m))
}
