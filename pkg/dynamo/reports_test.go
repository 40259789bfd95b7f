package dynamo_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func TestReportsInMemory(t *testing.T) {
	storetest.RunReports(t, func(t *testing.T, now func() time.Time) storetest.ReportStore {
		return newStore(t, newTable(t), func(cfg *dynamo.Config) { cfg.Now = now })
	})
}
