package valkey_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// clusterRules are what the user needs where the server is one of a cluster: its keys are those of one table.
var clusterRules = strings.Replace(userRules, "~{*}:*", "~{"+clusterTable+":*", 1) + " +cluster|slots"

// withCluster starts a cluster whose servers have the user of the store.
func withCluster(t *testing.T, options ...string) *valkeytest.Cluster {
	t.Helper()
	c := valkeytest.StartCluster(t, append([]string{"--requirepass", adminPassword, "--masterauth", adminPassword}, options...)...)
	for _, s := range c.Servers {
		s.Must(append([]string{"ACL", "SETUSER", userName, "on", ">first"}, strings.Fields(clusterRules)...)...)
	}
	return c
}

// calmCluster are options of a cluster that replaces no server which is slow on a busy machine.
var calmCluster = []string{"--cluster-node-timeout", "5000"}

// clusterTable is the name of the table.
const clusterTable = "limits"

// Patterns of keys: of the bucket of a load, and of what belongs to no namespace.
const hotBucket, registry = "*:i:*/BUCKET#hot#*", "*:i:_/*"

// find returns a key that is like a pattern, its slot and the primary that has it.
func find(t *testing.T, c *valkeytest.Cluster, pattern string) (key string, slot int, of *valkeytest.Server) {
	t.Helper()
	for _, slot := range items.Slots(clusterTable) {
		of := c.Primary(slot)
		if key := of.Must("EVAL", "return redis.call('KEYS', ARGV[1])[1] or ''", "0", pattern); key != "" {
			slot = c.Slot(key)
			return key, slot, c.Primary(slot)
		}
	}
	t.Fatalf("no key is like %s", pattern)
	return "", 0, nil
}

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

// A store finds the servers of a cluster that have its table, and follows the table: to the replica of one that
// dies, to one that a person promotes, and to another part of the cluster. While the keys of a place move one by
// one no call for it is made, and none is wrong.
func TestCluster(t *testing.T) {
	for name, fault := range map[string]func(t *testing.T, l *load, c *valkeytest.Cluster, of *valkeytest.Server){
		"a server is killed": func(_ *testing.T, _ *load, _ *valkeytest.Cluster, of *valkeytest.Server) { of.Kill() },
		"a replica is promoted": func(_ *testing.T, _ *load, c *valkeytest.Cluster, of *valkeytest.Server) {
			c.Promote(of)
		},
		"the table moves": moveTable,
	} {
		t.Run(name, func(t *testing.T) {
			withLeases(t, func(t *testing.T, leases func(*valkey.Config)) {
				var options []string
				if name != "a server is killed" {
					options = calmCluster
				}
				c := withCluster(t, options...)
				var slot int
				var began *valkeytest.Server
				l, over := under(t, "", byCluster(c, leases), func(l *load) {
					_, slot, began = find(t, c, hotBucket)
					fault(t, l, c, began)
				})
				if c.Primary(slot) == began {
					t.Error("the bucket is still on the first server")
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

// moveTable moves all places of a table of some hundred buckets, each to another server.
func moveTable(t *testing.T, l *load, c *valkeytest.Cluster, _ *valkeytest.Server) {
	const buckets = 300
	for i := range buckets {
		if _, err := takeFrom(l.stores[0], strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	moveAll(t, c)
	t.Logf("%d buckets move in %v", buckets, time.Since(began))
}

// moveAll moves all places of the table, each to another server.
func moveAll(t *testing.T, c *valkeytest.Cluster) {
	t.Helper()
	for _, slot := range items.Slots(clusterTable) {
		of := c.Primary(slot)
		history := of.Must("EVAL", "for _, k in ipairs(redis.call('CLUSTER', 'GETKEYSINSLOT', ARGV[1], 10000)) do if k:find(':history$') then return k end end", "0", strconv.Itoa(slot))
		c.Move(slot, other(c, of), history) // without it no server decides
	}
}

// openInCluster opens a store with the default deadlines, and closes it with the test.
func openInCluster(t *testing.T, c *valkeytest.Cluster) *valkey.Store {
	t.Helper()
	s, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], byCluster(c, func(cfg *valkey.Config) { cfg.Attempt, cfg.Budget = 0, 0 })))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	return s
}

// other returns another one of the first primaries.
func other(c *valkeytest.Cluster, of *valkeytest.Server) *valkeytest.Server {
	return c.Servers[slices.IndexFunc(c.Servers[:3], func(s *valkeytest.Server) bool { return s != of })]
}

// Servers that do not know where the table is, or are in no cluster, are passed over.
func TestServersBesideACluster(t *testing.T) {
	c := withCluster(t)
	_, bus, _ := net.SplitHostPort(proctest.FreeAddress(t))
	for name, s := range map[string]*valkeytest.Server{
		"a server of another cluster": withUser(t, clusterRules, "--cluster-enabled", "yes", "--cluster-port", bus),
		"a server of no cluster":      withUser(t, clusterRules),
	} {
		s, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], func(cfg *valkey.Config) {
			byCluster(c, func(*valkey.Config) {})(cfg)
			cfg.Connection.Addresses = append([]string{s.Address}, cfg.Connection.Addresses...)
		}))
		if err != nil {
			t.Errorf("%s first: %v", name, err)
			continue
		}
		_ = s.Close(t.Context())
	}
	_, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], byCluster(c, func(cfg *valkey.Config) { cfg.Connection.Database = 3 })))
	if !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("database 3: %v", err)
	}
}

// While the slot of a table moves, nothing is written in part, and the sweep forgets no item that has moved.
func TestWritesWhileASlotMoves(t *testing.T) {
	c := withCluster(t)
	s := openInCluster(t, c)
	if admitted, err := takeFrom(s, "e"); !admitted || err != nil {
		t.Fatal(admitted, err)
	}
	if err := s.WriteReport(t.Context(), "r", []byte("first")); err != nil {
		t.Fatal(err)
	}
	key, slot, from := find(t, c, "*:i:*/BUCKET#e#*")
	prefix, name, _ := strings.Cut(key, "}:i:")
	expiring := prefix + "}:x"
	from.Must("ZADD", expiring, "XX", "1", name) // it is due
	c.BeginMove(slot, other(c, from))
	_, ofReport, has := find(t, c, registry)
	c.BeginMove(ofReport, other(c, has))
	if err := s.WriteReport(t.Context(), "r", []byte("second")); err == nil {
		t.Error("a report in the place of another one is written while the slot moves")
	}
	if n := from.MoveKey(slot, other(c, from), key); n != 1 {
		t.Fatalf("%d keys have moved", n)
	}
	<-time.After(2 * time.Second) // the sweep comes each second
	if score, err := from.Do("ZSCORE", expiring, name); score == "" || err != nil {
		t.Errorf("the sweep has forgotten an item that has moved: %q, %v", score, err)
	}
	c.Move(ofReport, other(c, has), "")
	for end := time.Now().Add(recovery); ; <-time.After(20 * time.Millisecond) {
		reports, err := s.ReadReports(t.Context())
		if err == nil {
			if len(reports) != 1 {
				t.Errorf("%d reports are there, want the first one", len(reports))
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// A primary that a replica took the place of, and that knows it by its lack of replicas alone, is left.
func TestAPrimaryWithoutReplicas(t *testing.T) {
	c := withCluster(t)
	s := openInCluster(t, c)
	if _, err := takeFrom(s, "e"); err != nil {
		t.Fatal(err)
	}
	_, _, old := find(t, c, "*:i:*/BUCKET#e#*")
	replica := c.Replica(old)
	old.Must("CLUSTER", "FORGET", replica.Must("CLUSTER", "MYID"))
	replica.Must("CLUSTER", "FAILOVER", "TAKEOVER")
	old.Must("CONFIG", "SET", "min-replicas-to-write", "1")
	for end := time.Now().Add(recovery); ; <-time.After(20 * time.Millisecond) {
		_, err := takeFrom(s, "e")
		n := replica.Info("commandstats", "cmdstat_evalsha:calls=")
		if err == nil && n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v; the new primary has run %v scripts", err, n)
		}
	}
}

// While no other server of the cluster can be used, errors say why.
func TestAUserThatAReplicaLacks(t *testing.T) {
	c := withCluster(t)
	s := openInCluster(t, c)
	if _, err := s.Secret(t.Context(), "of-the-test", []byte("secret of the test")); err != nil {
		t.Fatal(err)
	}
	_, _, old := find(t, c, registry)
	c.Replica(old).Must("ACL", "DELUSER", userName)
	old.Kill()
	for end := time.Now().Add(recovery); ; <-time.After(20 * time.Millisecond) {
		_, err := s.Secret(t.Context(), "of-the-test", []byte("secret of the test"))
		if err != nil && strings.Contains(err.Error(), "WRONGPASS") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the reason is not told: %v", err)
		}
	}
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
	c := withCluster(t)
	for _, s := range c.Servers {
		s.Must("ACL", "SETUSER", userName, "-cluster|slots")
	}
	_, err := valkey.Open(t.Context(), configOf(t, c.Servers[0], byCluster(c, func(*valkey.Config) {})))
	if !errors.Is(err, limiter.ErrInvalid) || !strings.Contains(err.Error(), "cluster|slots") {
		t.Errorf("Open: %v", err)
	}
}
