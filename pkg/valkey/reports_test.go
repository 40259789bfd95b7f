package valkey_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// Reports need no permission beyond those of the user of the store.
func TestReports(t *testing.T) {
	server := withUser(t, userRules)
	storetest.RunReports(t, func(t *testing.T, now func() time.Time) storetest.ReportStore {
		return onServer(t, server, func(cfg *valkey.Config) {
			asUser(cfg)
			cfg.Now = now
		})
	})
	if n := server.Must("ACL", "LOG"); n != "0" {
		t.Errorf("the server has refused %s kinds of calls of the user", n)
	}
}
