package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/awscmd"
	"github.com/ratelimit/ratelimit/internal/server"
	"github.com/ratelimit/ratelimit/pkg/aggregator"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// aggregateRegistry returns a registry with the metrics of an aggregator.
func aggregateRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(awscmd.NewAggregateMetrics(func() aggregator.Stats { return aggregator.Stats{Oldest: time.Unix(1, 0)} }), server.NewBudgetMetrics(server.OpenAlerts(config.Webhook{}, slog.New(slog.DiscardHandler))))
	return registry
}

// aggregateRows returns a row of the page of metrics for each metric of an aggregator.
func aggregateRows(t *testing.T) map[string]string {
	t.Helper()
	families, err := aggregateRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for _, f := range families {
		rows[f.GetName()] = metricRow(t, f.GetName(), f.GetType().String(), f.GetHelp(), nil)
	}
	return rows
}

func TestAggregateRefuses(t *testing.T) {
	embedded := programtest.WriteFile(t, "embedded.yaml", programtest.TwoPerMinute)
	table := programtest.WriteFile(t, "table.yaml", "store: {type: dynamodb, dynamodb: {table: none, endpoint: 'http://127.0.0.1:1', create_table: true}}"+programtest.TwoPerMinute)
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"an embedded store":    {[]string{"-c", embedded}, 2, "store.type is embedded"},
		"no such window":       {[]string{"-c", table, "--windows", "week"}, 2, "hour, day and month"},
		"no window":            {[]string{"-c", table, "--windows", ""}, 2, "--windows"},
		"a window not written": {[]string{"-c", table, "--windows", "day", "--keep", "hour=5h"}, 2, "none of --windows"},
		"an age that is none":  {[]string{"-c", table, "--keep", "hour=1d"}, 2, "720h"},
		"an age too short":     {[]string{"-c", table, "--keep", "month=23h59m"}, 2, "24h or more"},
		"an age below 0":       {[]string{"-c", table, "--keep", "hour=-720h"}, 2, "24h or more"},
		"a wait too long":      {[]string{"-c", table, "--flush", "1h"}, 2, "100ms to 1m"},
		"an argument":          {[]string{"-c", table, "now"}, 2, "flags only"},
	} {
		var stdout, stderr strings.Builder
		if code := run(t.Context(), append([]string{"aggregate"}, tt.args...), &stdout, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", name, code, stderr.String(), tt.code, tt.says)
		}
	}
}

// aggregating is a `ratelimit aggregate` that runs.
type aggregating struct {
	log   *proctest.LogBuffer
	stop  func()
	ended chan int
}

// aggregate runs `ratelimit aggregate` with a file, until its end is called.
func aggregate(t *testing.T, file string, args ...string) *aggregating {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a := &aggregating{log: new(proctest.LogBuffer), stop: stop, ended: make(chan int, 1)}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("log of the aggregator:\n%s", a.log)
		}
	})
	go func() {
		a.ended <- run(ctx, append([]string{"aggregate", "-c", file, "--http-address", "127.0.0.1:0", "--flush", "100ms"}, args...), io.Discard, a.log)
	}()
	return a
}

// told waits until the log has that many thresholds.
func (a *aggregating) told(t *testing.T, thresholds int) {
	t.Helper()
	eventually(t, "the thresholds in the log", func() bool { return strings.Count(a.log.String(), "a budget is used to a threshold") == thresholds })
}

// end stops the aggregator, which must succeed.
func (a *aggregating) end(t *testing.T) {
	t.Helper()
	a.stop()
	if code := <-a.ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, a.log)
	}
}

// The usage of a service on a table is listed as soon as an aggregator has read it. The
// aggregator's metrics show its work.
func TestAggregate(t *testing.T) {
	t.Parallel()
	server := dynamotest.Start(t)
	file := programtest.WriteFile(t, "c.yaml", onTable(server.URL, dynamotest.TableName(t), "100/minute"))
	service := start(t, "--config", file)
	for range 7 {
		service.ask(t, "ada")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stderr, log := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"aggregate", "-c", file, "--http-address", "127.0.0.1:0", "--flush", "100ms"}, io.Discard, log)
		_ = log.Close()
	}()
	line, err := bufio.NewReader(stderr).ReadString('\n')
	address := regexp.MustCompile(`http=(\S+)`).FindStringSubmatch(line)
	if err != nil || address == nil {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the pipe
	eventually(t, "7 requests in the usage", func() bool {
		code, list, _ := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t))
		return code == 0 && strings.Contains(list, ",7,")
	})
	process := &running{http: address[1]}
	_, metrics := process.get(t, "/metrics")
	for _, want := range []string{
		"\nratelimit_aggregate_losses_total 0\n", "\nratelimit_aggregate_dead_letters_total 0\n", "\nratelimit_aggregate_shards 1\n",
		"\nratelimit_aggregate_oldest_position_timestamp_seconds 1.", "\nratelimit_build_info{", "\ngo_goroutines ", "\nprocess_open_fds ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%s", want, metrics)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := process.get(t, path); code != 200 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
