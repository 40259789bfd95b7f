//go:build long

package catalog

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// TestControlOnDynamoDB is TestControl on the indexes of DynamoDB Local. Most of its time are round
// trips.
func TestControlOnDynamoDB(t *testing.T) {
	client := dynamotest.Start(t).Client(t)
	storetest.RunControl(t, func(t *testing.T) storetest.ControlStore { return newCatalogOnly(t, client) })
}
