package valkey_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

const (
	sentinelPassword = "of-the-sentinels"
	masterName       = "limits"
	// sentinelRules are what the user needs in addition where sentinels name the server.
	sentinelRules = "+role"
)

// withSentinel starts a primary, its replica, and a sentinel that watches them. The servers have the
// user of the store.
func withSentinel(t *testing.T) (primary, sentinel *valkeytest.Server) {
	t.Helper()
	rules := userRules + " " + sentinelRules
	primary = withUser(t, rules, "--masterauth", adminPassword)
	replica := withUser(t, rules, "--masterauth", adminPassword)
	replica.Follow(primary)
	sentinel = valkeytest.StartSentinel(t, primary, masterName, sentinelPassword)
	for end := time.Now().Add(recovery); ; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(sentinel.Must("INFO", "sentinel"), "slaves=1") {
			return primary, sentinel
		}
		if time.Now().After(end) {
			t.Fatal("the sentinel does not see the replica")
		}
	}
}

// bySentinel has a store find its server by a sentinel, which it knows by a name.
func bySentinel(t *testing.T, sentinel *valkeytest.Server) func(*valkey.Config) {
	t.Helper()
	_, port, err := net.SplitHostPort(sentinel.Address)
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *valkey.Config) {
		asUser(cfg)
		cfg.Connection.Addresses = []string{"localhost:" + port}
		cfg.Connection.Master = masterName
		cfg.Connection.Sentinel = valkey.Login{Password: sentinel.Password}
	}
}

// A store follows its sentinel to the server that takes the place of one that died.
func TestSentinel(t *testing.T) {
	t.Parallel()
	withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
		primary, sentinel := withSentinel(t)
		change := bySentinel(t, sentinel)
		_, over := under(t, "", func(cfg *valkey.Config) {
			leases(cfg)
			change(cfg)
		}, func(*load) { primary.Kill() })
		if most := int64(loadReplicas * loadCallers); over > most {
			t.Errorf("%d tokens too many, want at most a write of each replica: %d", over, most)
		}
	})
}

// A sentinel has a login of its own.
func TestSentinelLogin(t *testing.T) {
	primary, sentinel := withSentinel(t)
	cfg := configOf(t, primary, bySentinel(t, sentinel))
	for name, change := range map[string]func(*valkey.Config){
		"wrong for the sentinel": func(cfg *valkey.Config) { cfg.Connection.Sentinel.Password = "hush" },
		"wrong for the server":   func(cfg *valkey.Config) { cfg.Connection.Login.Password = "hush" },
		"an unknown master":      func(cfg *valkey.Config) { cfg.Connection.Master = "hush" },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := cfg
			change(&wrong)
			began := time.Now()
			_, err := valkey.Open(t.Context(), wrong)
			t.Log(err)
			if !errors.Is(err, limiter.ErrUnavailable) || strings.Contains(err.Error(), "hush") {
				t.Errorf("Open: %v", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("Open took %v", took)
			}
		})
	}
}
