package command

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	build := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "github.com/ratelimit/ratelimit", Version: version}}
	}
	for _, test := range []struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"v1.2.3", build("v1.2.2"), "v1.2.3"},
		{"", build("v1.2.3"), "v1.2.3"},
		{"", build("v0.0.0-20260102030405-0123456789ab+dirty"), "v0.0.0-20260102030405-0123456789ab+dirty"},
		{"", build("(devel)"), "dev"},
		{"", build(""), "dev"},
		{"", nil, "dev"},
	} {
		if got := versionOf(test.linked, test.info); got != test.want {
			t.Errorf("%q, %+v: got %q, want %q", test.linked, test.info, got, test.want)
		}
	}
}
