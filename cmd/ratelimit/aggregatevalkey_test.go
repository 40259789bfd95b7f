package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// changedBefore makes two changes on a server at a time before now, with a store whose clock is right while it is
// opened.
func changedBefore(t *testing.T, server *valkeytest.Server, before time.Duration) {
	t.Helper()
	var open atomic.Bool
	s, err := valkey.Open(t.Context(), valkey.Config{
		Connection: valkey.Connection{Addresses: []string{server.Address}}, Create: true, Budget: time.Minute,
		Now: func() time.Time {
			if open.Load() {
				return time.Now().Add(-before)
			}
			return time.Now()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	open.Store(true)
	defer func() { _ = s.Close(context.Background()) }()
	for _, namespace := range []string{"default", "other"} {
		limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 60))
		if err != nil {
			t.Fatal(err)
		}
		ctx := limiter.WithPrincipal(t.Context(), "ada")
		if err := s.PutLimits(ctx, namespace, limiter.ResourceLimitsRef("gpt-4"), limiter.Record{Limits: limits}); err != nil {
			t.Fatal(err)
		}
	}
}

// archives runs the command of a file with an archive, until its end is called.
func archives(t *testing.T, file string) *aggregating {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	a := &aggregating{log: new(proctest.LogBuffer), stop: stop, ended: make(chan int, 1)}
	t.Cleanup(stop)
	go func() {
		a.ended <- run(ctx, []string{"aggregate", "-c", file, "--http-address", "127.0.0.1:0", "--archive", "s3://audit-events/audit"}, io.Discard, a.log)
	}()
	return a
}

// A process puts the audit events of a table on a server into the archive before they expire, as on DynamoDB, once
// they are not new any more. The next process begins where it ended, and replicas tell of both.
func TestAggregateArchivesOfAServer(t *testing.T) {
	bucket := newBucket(t, startMoto(t), "audit-events")
	server := valkeytest.Start(t)
	changedBefore(t, server, 2*time.Hour)
	changedBefore(t, server, 0)
	file := programtest.WriteFile(t, "c.yaml", onServer(server.Address, "", "4/hour"))
	process := archives(t, file)
	eventually(t, "two events in the archive", func() bool {
		lines, _ := archived(t, bucket)
		return len(lines) >= 2
	})
	service := start(t, "--config", file)
	eventually(t, "the status of the archive", func() bool {
		_, out, _ := output(t, "status", "--server", service.adminURL(t))
		return regexp.MustCompile(`aggregator: +up to date \d+ s ago`).MatchString(out)
	})
	address := regexp.MustCompile(`aggregating.*http=(\S+)`).FindStringSubmatch(process.log.String())
	if address == nil {
		t.Fatalf("no address in the log\n%s", process.log)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ok\n", "/metrics": "\nratelimit_aggregate_archived_events_total 2\n"} {
		r, err := http.Get("http://" + address[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v, %s; want %q", path, err, body, want)
		}
	}
	process.end(t)
	process = archives(t, file)
	eventually(t, "the next process", func() bool { return strings.Contains(process.log.String(), "aggregating") })
	process.end(t)
	lines, names := archived(t, bucket)
	wantServersEvents(t, lines, names)
}

// wantServersEvents demands the two changes of gpt-4, in an object of two hours ago.
func wantServersEvents(t *testing.T, lines, names []string) {
	t.Helper()
	form := regexp.MustCompile(`^audit/year=\d{4}/month=\d\d/day=\d\d/[A-Z2-7]{26}_\d{13}_\d{13}\.jsonl\.gz$`)
	if len(names) == 0 || len(names) > 2 || slices.ContainsFunc(names, func(name string) bool { return !form.MatchString(name) }) { // two, where a window ends between the changes
		t.Errorf("objects %q", names)
	}
	spaces := map[string]bool{}
	for _, line := range lines {
		var l command.AuditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.NamespaceID) != 11 {
			t.Errorf("%s: %v", line, err)
		}
		spaces[l.NamespaceID] = true
		got := []any{l.Action, l.Principal, l.Resource.String()}
		if diff := cmp.Diff([]any{"limits.put", "ada", "gpt-4"}, got); diff != "" || time.Since(l.Time) < time.Hour {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	if len(lines) != 2 || len(spaces) != 2 {
		t.Errorf("%d lines of %d namespaces, want 2 of 2:\n%s", len(lines), len(spaces), strings.Join(lines, "\n"))
	}
}

// A table on a server has nothing but audit events for an aggregator, and must be there.
func TestAggregateOfAServerRefuses(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	server := valkeytest.Start(t)
	file := programtest.WriteFile(t, "c.yaml", onServer(server.Address, "", "4/hour"))
	archive := []string{"--archive", "s3://audit-events/audit"}
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no archive":      {nil, 2, "--archive s3://bucket/audit"},
		"windows":         {append([]string{"--windows", "hour"}, archive...), 2, "--windows is of usage"},
		"how long":        {append([]string{"--keep", "hour=48h"}, archive...), 2, "--keep is of usage"},
		"a flush":         {append([]string{"--flush", "1s"}, archive...), 2, "--flush is of usage"},
		"another archive": {[]string{"--archive", "audit-events"}, 2, "s3://bucket/audit"},
		"no table":        {archive, 1, "store.valkey: invalid: there is no table ratelimit on the server; make it with ratelimit valkey create"},
	} {
		var stderr strings.Builder
		if code := run(t.Context(), append([]string{"aggregate", "-c", file}, tt.args...), io.Discard, &stderr); code != tt.code || !strings.Contains(stderr.String(), tt.says) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", name, code, stderr.String(), tt.code, tt.says)
		}
	}
}
