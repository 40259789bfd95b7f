package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

const (
	statsdTimeout = 2 * time.Second // to connect, and to send
	statsdLine    = 8 << 10         // bytes of a metric; a longer one is not sent
	statsdPacket  = 1400            // bytes of a packet of UDP, below the usual bound of a network
)

// statsd sends the growth of counters to a StatsD server. A growth that cannot be sent is part of the next one.
type statsd struct {
	cfg   config.Statsd
	stats func(each func(rls.Stat))
	log   *slog.Logger

	conn net.Conn
	sent map[rls.Stat]int64 // by their names and times
	warn *limiter.SampledLog
}

// statsOf returns a function that calls another one with each counter of envoyproxy/ratelimit.
func statsOf(s *Service) func(each func(rls.Stat)) {
	return func(each func(rls.Stat)) {
		each(rls.Stat{Name: "ratelimit.service.config_load_success", Value: s.metrics.good.Load()})
		each(rls.Stat{Name: "ratelimit.service.config_load_error", Value: s.metrics.bad.Load()})
		s.stats.Each(each)
	}
}

func newStatsd(cfg config.Statsd, stats func(each func(rls.Stat)), log *slog.Logger) *statsd {
	return &statsd{cfg: cfg, stats: stats, log: log, sent: map[rls.Stat]int64{}, warn: limiter.NewSampledLog(log)}
}

// run sends at each interval until ctx ends, and then once more.
func (s *statsd) run(ctx context.Context) error {
	if s.cfg.Address == "" {
		return nil
	}
	defer s.close()
	ticker := time.NewTicker(s.cfg.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.send(ctx)
		case <-ctx.Done():
			ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), statsdTimeout)
			defer stop()
			s.send(ctx)
			return nil
		}
	}
}

// send sends the growth since the last sending.
func (s *statsd) send(ctx context.Context) {
	grown, there := map[rls.Stat]int64{}, map[rls.Stat]bool{}
	s.stats(func(stat rls.Stat) {
		value := stat.Value
		stat.Value = 0
		there[stat] = true
		if value < s.sent[stat] { // the rule was away, and its counter begins anew
			s.sent[stat] = 0
		}
		if value != s.sent[stat] {
			grown[stat] = value
		}
	})
	maps.DeleteFunc(s.sent, func(stat rls.Stat, _ int64) bool { return !there[stat] })
	if len(grown) == 0 {
		return
	}
	var packet strings.Builder
	var inPacket []rls.Stat
	flush := func() error {
		if packet.Len() == 0 {
			return nil
		}
		if err := s.write(ctx, packet.String()); err != nil {
			return err
		}
		for _, stat := range inPacket {
			s.sent[stat] = grown[stat]
		}
		packet.Reset()
		inPacket = inPacket[:0]
		return nil
	}
	var err error
	inOrder := func(a, b rls.Stat) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Time, b.Time)) }
	for _, stat := range slices.SortedFunc(maps.Keys(grown), inOrder) {
		line := s.line(stat, grown[stat]-s.sent[stat])
		if len(line) > statsdLine {
			s.warn.Write(ctx, time.Now(), slog.LevelWarn, "statsd name", "a metric with a long name is not sent to StatsD", slog.String("name", limiter.ShortName(stat.Name)))
			continue
		}
		if packet.Len()+len(line) > statsdPacket {
			err = flush()
		}
		if err != nil {
			break
		}
		packet.WriteString(line)
		inPacket = append(inPacket, stat)
	}
	if err == nil {
		err = flush()
	}
	if err != nil {
		s.close()
		s.warn.Write(ctx, time.Now(), slog.LevelWarn, "statsd", "metrics cannot be sent to StatsD; they are sent later", slog.String("address", s.cfg.Address), slog.Any("error", err))
	}
}

// line writes the growth of a counter. Calls of one time are one sample of as many, in microseconds as that
// service has them.
func (s *statsd) line(stat rls.Stat, grown int64) string {
	value := fmt.Sprintf(":%d|c", grown)
	if stat.Time > 0 {
		value = fmt.Sprintf(":%d|ms|@%s", stat.Time.Microseconds(), sampleRate(grown))
	}
	tags := slices.DeleteFunc(slices.Sorted(maps.Keys(s.cfg.Tags)), func(tag string) bool { return s.cfg.Tags[tag] == "" })
	if s.cfg.Protocol == config.DogStatsd {
		parts := make([]string, len(tags))
		for i, tag := range tags {
			parts[i] = tag + ":" + tagValue(s.cfg.Tags[tag])
		}
		if len(parts) > 0 {
			value += "|#" + strings.Join(parts, ",")
		}
		return stat.Name + value + "\n"
	}
	var line strings.Builder
	line.WriteString(stat.Name)
	for _, tag := range tags { // the form of that service
		line.WriteString(".__" + tag + "=" + tagValue(s.cfg.Tags[tag]))
	}
	return line.String() + value + "\n"
}

// sampleRate writes the rate of one sample of so many. It is rounded down: receivers cut the number that they make
// of it to a whole one.
func sampleRate(of int64) string {
	if of <= 1 {
		return "1"
	}
	return strconv.FormatFloat((1-1e-11)/float64(of), 'g', 12, 64)
}

// tagValue returns the value of a tag as that service sends it. A point would be a level of a name.
func tagValue(value string) string {
	return strings.NewReplacer(".", "_", ":", "_", "|", "_").Replace(value)
}

// write sends text over the connection, and makes one where there is none.
func (s *statsd) write(ctx context.Context, text string) error {
	ctx, stop := context.WithTimeout(ctx, statsdTimeout)
	defer stop()
	if s.conn == nil {
		network := "udp"
		if s.cfg.Protocol == config.StatsdTCP {
			network = "tcp"
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, s.cfg.Address)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	deadline, _ := ctx.Deadline()
	if err := s.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	_, err := s.conn.Write([]byte(text))
	return err
}

func (s *statsd) close() {
	if s.conn != nil {
		_ = s.conn.Close() // what was written is with the server
		s.conn = nil
	}
}
