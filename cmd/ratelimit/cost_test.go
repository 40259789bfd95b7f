package main

import (
	"strings"
	"testing"
)

func TestCost(t *testing.T) {
	for _, test := range []struct {
		args   string
		code   int
		stdout []string
		stderr string
	}{
		{"", 0, []string{"writes a second ", "1000.0 (1.0000 a call)", "$1642.50 a month", "of 2026-11-01"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000", 0, []string{"60.0 (0.0006 a call)", "6 writes a second"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000 --over-limit 1", 0, []string{"111.0 (0.0011 a call)", "11 writes a second"}, ""},
		{"--hot-keys 10 --hot-share 1 --calls 100000 --no-leases", 0, []string{"8400.0"}, ""},
		{"--write-price 1", 0, []string{"$2628.00 a month", "of given"}, ""},
		{"-o json", 0, []string{`"writes_per_second": 1000`, `"leases": true`}, ""},
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
