package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

func TestCost(t *testing.T) {
	for _, test := range []struct {
		args   string
		code   int
		stdout []string
		stderr string
	}{
		{"", 0, []string{"writes a second ", "1000.0 (1.0000 a call)", "$1642.50 a month", "of 2026-11-01"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000", 0, []string{"45.0 (0.0004 a call)", "4 writes a second"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000 --over-limit 1", 0, []string{"90.0 (0.0009 a call)", "9 writes a second"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000 --no-leases", 0, []string{"8400.0"}, ""},
		{"--write-price 1", 0, []string{"$2628.00 a month", "of given"}, ""},
		{"-o json", 0, []string{`"writes_per_second": 1000`, `"leases": true`}, ""},
		{"--store valkey", 0, []string{"1000.0 (1.0000 a call)", "processor          0.03 of the one", "0.03 GB", "2.02 GB at most", "2.04 GB, and up to as much again"}, ""},
		{"--store valkey --calls 40000 --no-usage", 0, []string{"1.12 of the one that a server uses, too much for one server", "usage              none"}, ""},
		{"--store valkey -o json", 0, []string{`"messages_per_second": 1000`, `"bucket_bytes": 25000000`}, ""},
		{"--store valkey --write-price 1", 2, nil, "--write-price has no effect with --store valkey; leave it out"},
		{"--no-usage", 2, nil, "--no-usage has no effect with --store dynamodb; leave it out"},
		{"--store redis", 2, nil, `--store is "redis"; it must be dynamodb or valkey`},
		{"--hot-share 2", 2, nil, "--hot-share is 2; it must be 0 to 1"},
		{"--levels 0", 2, nil, "--levels is 0; it must be 1 to 8"},
		{"-o xml", 2, nil, "--output"},
	} {
		code, stdout, stderr := output(t, append([]string{"cost"}, strings.Fields(test.args)...)...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: exit code %d, want %d\n%s", test.args, code, test.code, stderr)
		}
		wantParts(t, test.args, stdout, test.stdout)
	}
}

// Digits of amounts may be grouped.
func TestCostReadsGroupedNumbers(t *testing.T) {
	_, plain, _ := output(t, "cost", "--calls", "25000", "--keys", "1000000", "--hot-keys", "100", "--hot-share", "0.5")
	code, grouped, stderr := output(t, "cost", "--calls", "25_000", "--keys", "1_000_000", "--hot-keys", "1_00", "--hot-share", "0.5")
	if code != 0 || plain == "" || grouped != plain {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, stderr, grouped, plain)
	}
	for _, wrong := range []string{"25_", "_25", "x"} {
		if code, _, stderr := output(t, "cost", "--calls", wrong); code != command.ExitUsage || !strings.Contains(stderr, wrong) {
			t.Errorf("%s: exit code %d, %s", wrong, code, stderr)
		}
	}
}
