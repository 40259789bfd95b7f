package server

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// Metrics have the tags of envoyproxy/ratelimit, and a name that no packet takes keeps no other one from being sent.
func TestStatsdLines(t *testing.T) {
	server, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	counters := map[rls.Stat]int64{{Name: "a." + strings.Repeat("x", 100_000)}: 1, {Name: "b"}: 2}
	s := newStatsd(config.Statsd{Address: server.LocalAddr().String(), Protocol: config.StatsdUDP, Tags: map[string]string{"version": "1.2.3", "env": ""}},
		func(each func(rls.Stat)) {
			for stat, value := range counters {
				stat.Value = value
				each(stat)
			}
		}, slog.New(slog.DiscardHandler))
	defer s.close()
	receive := func(want string) {
		t.Helper()
		s.send(t.Context())
		if err := server.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		packet := make([]byte, 2048)
		n, _, err := server.ReadFrom(packet)
		if got := string(packet[:n]); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	receive("b.__version=1_2_3:2|c\n")
	delete(counters, rls.Stat{Name: "b"})
	s.send(t.Context())
	counters[rls.Stat{Name: "b"}] = 3 // it begins anew
	receive("b.__version=1_2_3:3|c\n")
	counters[rls.Stat{Name: "time", Time: time.Millisecond}] = 4
	receive("time.__version=1_2_3:1000|ms|@0.249999999997\n")
}

// A receiver that cuts the inverse of a rate to a whole number has the number of calls.
func TestSampleRate(t *testing.T) {
	for n := int64(1); n < 3_000_000_000; n += 1 + n/1000 {
		rate, err := strconv.ParseFloat(sampleRate(n), 64)
		if got := int64(1 / rate); err != nil || got != n || 1/rate-float64(n) > 0.5 {
			t.Fatalf("%d calls: %s is %d, %v", n, sampleRate(n), got, err)
		}
	}
}
