package rls

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// FileStats are the counters of envoyproxy/ratelimit for the domains of its files, by their names in StatsD. The zero
// value is ready, and safe for concurrent use.
type FileStats struct {
	total, failed, shadowed atomic.Int64                 // calls
	took                    [len(callTimes)]atomic.Int64 // calls by their time, up to each of callTimes

	mu  sync.Mutex
	all map[string]*fileStat // by the name of the limit, with all levels of the file
}

// fileStat counts the hits of one limit, by kind.
type fileStat [hitsKinds]atomic.Int64

// Stat is one counter.
type Stat struct {
	Name string
	// Time is that of the calls which are counted, rounded up; 0 = the counter is of something else.
	Time  time.Duration
	Value int64
}

// callTimes are the times of calls that metrics tell apart. Longer calls count as the longest.
var callTimes = [...]time.Duration{
	10 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond, time.Millisecond,
	5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
}

// replace returns a function that gives the counters of a limit: those that it had before, if any. The counters of
// limits for which it is not called end with the next replace.
func (s *FileStats) replace() func(name string) *fileStat {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.all
	s.all = map[string]*fileStat{}
	return func(name string) *fileStat {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.all[name] == nil {
			s.all[name] = before[name]
		}
		if s.all[name] == nil {
			s.all[name] = new(fileStat)
		}
		return s.all[name]
	}
}

// Each calls f with each counter. They never decrease while their rules are in force.
func (s *FileStats) Each(f func(Stat)) {
	f(Stat{Name: "ratelimit_server.ShouldRateLimit.total_requests", Value: s.total.Load()})
	f(Stat{Name: "ratelimit.service.call.should_rate_limit.service_error", Value: s.failed.Load()})
	f(Stat{Name: "ratelimit.service.global_shadow_mode", Value: s.shadowed.Load()})
	for i := range s.took {
		f(Stat{Name: "ratelimit_server.ShouldRateLimit.response_time", Time: callTimes[i], Value: s.took[i].Load()})
	}
	s.mu.Lock()
	all := maps.Clone(s.all)
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for kind, suffix := range hitsNames() {
			f(Stat{Name: name + "." + suffix, Value: all[name][kind].Load()})
		}
	}
}

// ipv4 finds addresses, whose points would be levels of a name.
var ipv4 = regexp.MustCompile(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// statName returns the name of a limit in StatsD.
func statName(domain string, keys []string) string {
	name := "ratelimit.service.rate_limit." + strings.Join(append([]string{domain}, keys...), ".")
	name = ipv4.ReplaceAllStringFunc(name, func(ip string) string { return strings.ReplaceAll(ip, ".", "_") })
	return strings.Map(func(r rune) rune {
		if r == ':' || r == '|' || r == '@' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
}

// call counts a call.
func (s *FileStats) call(took time.Duration, err error) {
	s.total.Add(1)
	i, _ := slices.BinarySearch(callTimes[:], took)
	s.took[min(i, len(callTimes)-1)].Add(1)
	if err != nil {
		s.failed.Add(1)
	}
}

// The kinds of hits.
const (
	hitsTotal = iota
	hitsWithin
	hitsNear
	hitsOver
	hitsShadow
	hitsKinds
)

// hitsNames are the names of the kinds of hits.
func hitsNames() [hitsKinds]string {
	return [hitsKinds]string{"total_hits", "within_limit", "near_limit", "over_limit", "shadow_mode"}
}
