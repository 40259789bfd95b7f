package valkey_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// clusterRules are what the user needs in addition where the server is one of a cluster.
const clusterRules = "+cluster|keyslot +cluster|slots"

// withCluster starts a cluster whose servers have the user of the store. of returns the server that has the
// test's table.
func withCluster(t *testing.T) (c *valkeytest.Cluster, of func() *valkeytest.Server) {
	t.Helper()
	c = valkeytest.StartCluster(t, "--requirepass", adminPassword, "--masterauth", adminPassword)
	for _, s := range c.Servers {
		s.Must(append([]string{"ACL", "SETUSER", userName, "on", ">first"}, strings.Fields(userRules+" "+clusterRules)...)...)
	}
	slot := c.Slot(clusterSlot)
	return c, func() *valkeytest.Server { return c.Primary(slot) }
}

// clusterTable is the name of the table, and clusterSlot a key in its slot.
const clusterTable, clusterSlot = "limits", "{limits}"

// byCluster has a store find its server by servers of a cluster.
func byCluster(c *valkeytest.Cluster, change func(*valkey.Config)) func(*valkey.Config) {
	return func(cfg *valkey.Config) {
		change(cfg)
		asUser(cfg)
		cfg.Name, cfg.Connection.Addresses = clusterTable, nil
		for _, s := range c.Servers[:3] {
			cfg.Connection.Addresses = append(cfg.Connection.Addresses, s.Address)
		}
	}
}

// A store finds the server of a cluster that has its table, and follows the table: to the replica of one that
// dies, to one that a person promotes, and to another part of the cluster. While the keys of the table move one by
// one no call is made, and none is wrong.
func TestCluster(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, l *load, c *valkeytest.Cluster, of *valkeytest.Server){
		"a server is killed": func(_ *testing.T, _ *load, _ *valkeytest.Cluster, of *valkeytest.Server) { of.Kill() },
		"a replica is promoted": func(_ *testing.T, _ *load, c *valkeytest.Cluster, of *valkeytest.Server) {
			c.Replica(of).Must("CLUSTER", "FAILOVER")
		},
		"the table moves": moveTable,
	} {
		t.Run(name, func(t *testing.T) {
			withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
				c, of := withCluster(t)
				began := of()
				l, over := under(t, "", byCluster(c, leases), func(l *load) { fault(t, l, c, began) })
				if of() == began {
					t.Error("the table is still on the first server")
				}
				if most := int64(loadReplicas * loadCallers); over > most {
					t.Errorf("%d tokens too many, want at most a write of each replica: %d", over, most)
				}
				if err := l.failure.Load(); err != nil && !errors.Is(*err, limiter.ErrUnavailable) && !errors.Is(*err, limiter.ErrUncertain) {
					t.Errorf("the last call that failed: %v", *err)
				}
			})
		})
	}
}

// moveTable moves a table of some hundred buckets to a server that has no part in it.
func moveTable(t *testing.T, l *load, c *valkeytest.Cluster, of *valkeytest.Server) {
	const buckets = 300
	for i := range buckets {
		if _, err := takeFrom(l.stores[0], strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	to := c.Servers[slices.IndexFunc(c.Servers[:3], func(s *valkeytest.Server) bool { return s != of })]
	c.Move(c.Slot(clusterSlot), to, clusterSlot+":history") // without it no server decides
	t.Logf("%d buckets move in %v", buckets, time.Since(began))
}

// Several servers that are no cluster have no table together: none of them knows what the others have.
func TestServersThatAreNoCluster(t *testing.T) {
	a, b := valkeytest.Start(t), valkeytest.Start(t)
	began := time.Now()
	_, err := valkey.Open(t.Context(), configOf(t, a, func(cfg *valkey.Config) { cfg.Connection.Addresses = []string{a.Address, b.Address} }))
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "no cluster") {
		t.Errorf("Open: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Open took %v", took)
	}
}

// A user of a cluster that may not ask for the slots fails at the start, with an error that names the command.
func TestUserThatMayNotAskForSlots(t *testing.T) {
	c, _ := withCluster(t)
	for _, s := range c.Servers {
		s.Must("ACL", "SETUSER", userName, "-cluster|slots")
	}
	_, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], byCluster(c, func(*valkey.Config) {})))
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "cluster|slots") {
		t.Errorf("Open: %v", err)
	}
}
