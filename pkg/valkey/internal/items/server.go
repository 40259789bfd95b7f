package items

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// minVersion is the oldest version of Redis that runs the scripts: they have flags. All versions of
// Valkey do.
const minVersion = 7

// maxServerOffset is how far the server's clock may be from this machine's at the start.
const maxServerOffset = 10 * time.Minute

// Server is a server as INFO shows it.
type Server struct {
	Version     string // of Redis, or of Redis that Valkey is compatible with
	Role        string // master, or slave
	Cluster     bool   // it is part of a cluster
	Address     string // in a cluster
	Parts       int    // how many parts of the table it is for, in a cluster
	Eviction    string // maxmemory-policy
	Memory      int64  // bytes in use
	MaxMemory   int64  // 0 = no bound
	Replicas    int    // connected ones
	Persistence string // aof, rdb, or none
	Time        time.Time
}

// Servers reads the states of the servers that have the table.
func (l *link) Servers(ctx context.Context) ([]*Server, error) {
	var all []*Server
	servers := l.servers.Load()
	for _, client := range servers.clients() {
		s, err := l.server(ctx, servers, client)
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// server reads the state of a server.
func (l *link) server(ctx context.Context, of *Servers, client rueidis.Client) (*Server, error) {
	info, err := client.Do(ctx, client.B().Info().Build()).ToString()
	if err != nil {
		return nil, l.translate(err)
	}
	fields := make(map[string]string)
	for line := range strings.SplitSeq(info, "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	s := &Server{Version: fields["redis_version"], Role: fields["role"], Cluster: fields["cluster_enabled"] == "1", Eviction: fields["maxmemory_policy"], Persistence: persistence(fields)}
	for place, c := range of.Clients {
		if s.Cluster && c == client {
			s.Address = of.address(place)
			s.Parts++
		}
	}
	s.Memory, _ = strconv.ParseInt(fields["used_memory"], 10, 64)
	s.MaxMemory, _ = strconv.ParseInt(fields["maxmemory"], 10, 64)
	s.Replicas, _ = strconv.Atoi(fields["connected_slaves"])
	sent := l.now()
	at, err := client.Do(ctx, client.B().Time().Build()).AsIntSlice()
	if err != nil || len(at) != 2 {
		return nil, l.translate(err)
	}
	s.Time = time.Unix(at[0], at[1]*1000)
	if l.clock != nil && client == of.Clients[clockPlace] { // no decision comes before this, so that none goes by a wrong clock
		l.clock.ObserveExact(sent, l.now(), s.Time)
	}
	return s, nil
}

func persistence(fields map[string]string) string {
	switch {
	case fields["aof_enabled"] == "1":
		return "aof"
	case fields["rdb_last_save_time"] != "" && fields["rdb_saves"] != "" && fields["rdb_saves"] != "0":
		return "rdb"
	}
	return "none"
}

// checkServers reads the states of the servers, and reports why one cannot have a table.
func (l *link) checkServers(ctx context.Context) ([]*Server, error) {
	all, err := l.Servers(ctx)
	for _, s := range all {
		if wrong := l.check(s); wrong != nil {
			return all, wrong
		}
	}
	return all, err
}

// check reports why a server cannot have a table.
func (l *link) check(s *Server) error {
	err := l.unfit(s)
	if err != nil && s.Address != "" {
		return fmt.Errorf("%w (the primary at %s)", err, s.Address)
	}
	return err
}

func (l *link) unfit(s *Server) error {
	major, _, _ := strings.Cut(s.Version, ".")
	n, _ := strconv.Atoi(major)
	off := s.Time.Sub(l.now().Round(0))
	switch {
	case n < minVersion:
		return fmt.Errorf("%w: the server is of version %.20q; it must be Redis %d or later, or Valkey", limiter.ErrInvalid, s.Version, minVersion)
	case s.Role != "master":
		return fmt.Errorf("%w: the server is a replica; store.valkey.addresses must name the primary, or sentinels with store.valkey.master", limiter.ErrUnavailable)
	case s.Eviction != "noeviction":
		return fmt.Errorf("%w: the server has maxmemory-policy %.30s, by which buckets are dropped and come back full; it must be noeviction", limiter.ErrInvalid, s.Eviction)
	case off.Abs() > maxServerOffset:
		return fmt.Errorf("%w: the clock of the server and that of this machine are %v apart; set the wrong one", limiter.ErrInvalid, off.Abs().Round(time.Second))
	}
	return nil
}
