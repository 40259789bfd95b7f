//go:build torture

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/proctest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// takeover is the longest time until another process works on the shards of one that was killed: a read of
// the leases each 20 s, and 30 s without a change. A busy machine has twice as long.
const takeover = 2 * time.Minute

// consumer is an aggregator that is a process of its own.
type consumer struct {
	*running

	cmd *exec.Cmd
}

// consume starts an aggregator.
func consume(t *testing.T, program, file string) *consumer {
	t.Helper()
	log := new(proctest.LogBuffer)
	cmd := exec.CommandContext(t.Context(), program, "aggregate", "-c", file, "--http-address", "127.0.0.1:0", "--flush", "500ms")
	cmd.Env = []string{"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local"}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &consumer{&running{}, cmd}
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("log of the aggregator:\n%s", log)
		}
	})
	eventually(t, "the address of an aggregator", func() bool {
		address := regexp.MustCompile(`http=(\S+)`).FindStringSubmatch(log.String())
		if address != nil {
			c.http = address[1]
		}
		return address != nil
	})
	return c
}

// kill ends the process by SIGKILL: it writes nothing any more.
func (c *consumer) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it was killed
}

// reads waits until the process works on the shard of the stream.
func (c *consumer) reads(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), takeover)
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if _, metrics := c.get(t, "/metrics"); strings.Contains(metrics, "\nratelimit_aggregate_shards 1\n") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no process has taken over in %v", takeover)
		case <-tick.C:
		}
	}
}

// Two consumers are killed in turn by SIGKILL, each while it reads the stream and writes usage. The next one
// goes on, and usage is exactly the admitted amount.
func TestConsumersThatAreKilled(t *testing.T) {
	server := dynamotest.Start(t)
	file := programtest.WriteFile(t, "c.yaml", onTable(server.URL, dynamotest.TableName(t), "1000000/minute"))
	service, program := start(t, "--config", file), bootstrap(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	admitted := make(chan int)
	go func() {
		tick, n := time.NewTicker(100*time.Millisecond), 0
		defer tick.Stop()
		for ctx.Err() == nil {
			if code, _ := service.ask(t, "ada"); code == 200 {
				n++
			}
			<-tick.C
		}
		admitted <- n
	}()
	reader := consume(t, program, file)
	reader.reads(t)
	for range 2 {
		next := consume(t, program, file)
		eventually(t, "usage by the process that is killed then", func() bool {
			_, metrics := reader.get(t, "/metrics")
			return regexp.MustCompile(`\nratelimit_aggregate_snapshots_total [1-9]`).MatchString(metrics)
		})
		reader.kill()
		next.reads(t)
		reader = next
	}
	stop()
	want := fmt.Sprintf(",%d,", <-admitted)
	eventually(t, "the usage of all that was admitted, "+want, func() bool {
		code, list, _ := output(t, "list", "usage", "--window", "month", "-o", "csv", "--server", service.adminURL(t))
		return code == 0 && strings.Contains(list, want)
	})
}
