package valkeytest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// slots is how many slots of keys a cluster has.
const slots = 16384

// Cluster is three primaries with an equal part of the slots, and a replica of each. A primary that does not
// answer for half a second is replaced.
type Cluster struct {
	Servers []*Server // the primaries, and then their replicas

	tb testing.TB
}

// StartCluster starts a cluster, and stops it with the test. args are options as those of [Start].
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	const primaries = 3
	c := &Cluster{tb: tb}
	for range 2 * primaries {
		_, bus, err := net.SplitHostPort(proctest.FreeAddress(tb))
		if err != nil {
			tb.Fatal(err)
		}
		c.Servers = append(c.Servers, Start(tb, append([]string{"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "500", "--cluster-replica-validity-factor", "0"}, args...)...))
	}
	for i, s := range c.Servers {
		host, port, _ := net.SplitHostPort(c.Servers[0].Address)
		if i > 0 {
			s.Must("CLUSTER", "MEET", host, port, c.Servers[0].option("--cluster-port"))
		}
		if i < primaries {
			s.Must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/primaries), strconv.Itoa((i+1)*slots/primaries-1))
		}
	}
	for i, replica := range c.Servers[primaries:] {
		id := c.Servers[i].Must("CLUSTER", "MYID")
		c.await("a replica that knows its primary", func() bool { _, err := replica.Do("CLUSTER", "REPLICATE", id); return err == nil })
	}
	c.await("a cluster with its replicas", func() bool {
		for i, s := range c.Servers {
			if !strings.Contains(s.Must("CLUSTER", "INFO"), "cluster_state:ok") || strings.Count(s.Must("CLUSTER", "NODES"), "slave ") != primaries {
				return false
			}
			if i >= primaries && !strings.Contains(s.Must("INFO", "replication"), "master_link_status:up") {
				return false
			}
		}
		return true
	})
	return c
}

// option returns the value of an option of the server.
func (s *Server) option(name string) string { return s.args[slices.Index(s.args, name)+1] }

// await waits until something is so.
func (c *Cluster) await(name string, so func() bool) {
	c.tb.Helper()
	for end := time.Now().Add(patience); !so(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.tb.Fatalf("%s does not come within %v", name, patience)
		}
	}
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, err := strconv.Atoi(c.Servers[0].Must("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.tb.Fatal(err)
	}
	return slot
}

// Primary returns the server that has a slot, and waits until there is one.
func (c *Cluster) Primary(slot int) (of *Server) {
	c.tb.Helper()
	c.await(fmt.Sprintf("a server with slot %d", slot), func() bool {
		of = c.primary(slot)
		return of != nil
	})
	return of
}

// primary returns the server that has a slot, as it knows itself; nil = none does.
func (c *Cluster) primary(slot int) *Server {
	for _, s := range c.Servers {
		nodes, err := s.Do("CLUSTER", "NODES")
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(nodes, "\n") {
			fields := strings.Fields(line)
			if len(fields) > 8 && strings.Contains(fields[2], "myself") && strings.Contains(fields[2], "master") && slices.ContainsFunc(fields[8:], func(r string) bool { return inRange(slot, r) }) {
				return s
			}
		}
	}
	return nil
}

// inRange reports whether a slot is in a range such as 0-100.
func inRange(slot int, of string) bool {
	first, last, found := strings.Cut(of, "-")
	if !found {
		last = first
	}
	a, err := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	return err == nil && err2 == nil && a <= slot && slot <= b
}

// Replica returns a replica of a primary.
func (c *Cluster) Replica(of *Server) *Server {
	c.tb.Helper()
	_, port, _ := net.SplitHostPort(of.Address)
	for _, s := range c.Servers {
		if info, err := s.Do("INFO", "replication"); err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_port:"+port) {
			return s
		}
	}
	c.tb.Fatalf("the server at %s has no replica", of.Address)
	return nil
}

// Promote has the replica of a primary take its place, as a person does, and waits until it has.
func (c *Cluster) Promote(of *Server) {
	c.tb.Helper()
	replica := c.Replica(of)
	replica.Must("CLUSTER", "FAILOVER")
	c.await("the promotion of "+replica.Address, func() bool {
		info, err := replica.Do("INFO", "replication")
		return err == nil && strings.Contains(info, "role:master")
	})
}

// Move moves a slot with its keys to another primary, a key at a time, and one of them first.
func (c *Cluster) Move(slot int, to *Server, first string) {
	c.tb.Helper()
	from, text := c.Primary(slot), strconv.Itoa(slot)
	target := c.BeginMove(slot, to)
	for moved := from.MoveKey(slot, to, first); moved > 0; {
		moved = from.MoveKey(slot, to, "")
	}
	for _, s := range []*Server{to, from} {
		s.Must("CLUSTER", "SETSLOT", text, "NODE", target)
	}
	for _, s := range c.Servers { // one that hears of it late could tell the new owner that it is none
		if s != to && s != from {
			_, _ = s.Do("CLUSTER", "SETSLOT", text, "NODE", target) // replicas refuse
		}
	}
	c.await(fmt.Sprintf("slot %d at %s", slot, to.Address), func() bool { return c.primary(slot) == to })
}

// BeginMove begins the move of a slot to another primary, whose id it returns. No key is moved.
func (c *Cluster) BeginMove(slot int, to *Server) (id string) {
	c.tb.Helper()
	from, text := c.Primary(slot), strconv.Itoa(slot)
	source, target := from.Must("CLUSTER", "MYID"), to.Must("CLUSTER", "MYID")
	to.Must("CLUSTER", "SETSLOT", text, "IMPORTING", source)
	from.Must("CLUSTER", "SETSLOT", text, "MIGRATING", target)
	return target
}

// MoveKey moves a key of a slot to another primary, some keys with key "", and returns how many.
func (s *Server) MoveKey(slot int, to *Server, key string) int {
	s.tb.Helper()
	host, port, err := net.SplitHostPort(to.Address)
	if err != nil {
		s.tb.Fatal(err)
	}
	n, err := strconv.Atoi(s.Must("EVAL", moveScript, "0", strconv.Itoa(slot), host, port, to.Password, key))
	if err != nil {
		s.tb.Fatal(err)
	}
	return n
}

// moveScript moves some keys of a slot, and returns how many. Names of keys have any bytes.
const moveScript = `local keys = ARGV[5] ~= '' and {ARGV[5]} or redis.call('CLUSTER', 'GETKEYSINSLOT', ARGV[1], 10)
for _, k in ipairs(keys) do
  if ARGV[4] == '' then redis.call('MIGRATE', ARGV[2], ARGV[3], k, 0, 1000)
  else redis.call('MIGRATE', ARGV[2], ARGV[3], k, 0, 1000, 'AUTH', ARGV[4]) end
end
return #keys`
