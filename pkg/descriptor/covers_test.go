package descriptor_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		template, name string
		want           bool
	}{
		{"key/{key}", "key/k-1", true},
		{"key/{key}", "key/", true},
		{"key/{key}", "user/k-1", false},
		{"{tenant}/{key}", "a/b", true},
		{"office", "office", true},
		{"office", "offices", false},
		{"a.c", "abc", false},
		{"{{x}}/{key}", "{x}/k", true},
		{"{{x}}", "y", false},
		{"ip/{address/64}", "ip/2001:db8::/64", true},
	} {
		if got := descriptor.Covers(c.template, c.name); got != c.want {
			t.Errorf("%s and %s: got %t", c.template, c.name, got)
		}
	}
}
