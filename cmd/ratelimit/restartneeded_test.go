package main

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
)

// A setting that a reload cannot put in force needs a person, until it is as it was.
func TestASettingThatNeedsARestartIsTold(t *testing.T) {
	ownPlace(t)
	place(t, "ratelimit.yaml", hundredPerDay)
	r := start(t)
	r.adminURL(t)
	loaded := func(times int) {
		t.Helper()
		hangUp(t)
		eventually(t, "the reload", func() bool { return strings.Count(r.log.String(), `msg="configuration loaded"`) == times })
	}
	place(t, "ratelimit.yaml", "drain: 3s\nserver: {http: {address: '127.0.0.1:9'}}\n"+hundredPerDay)
	loaded(1)
	for _, name := range []string{"status", "doctor"} {
		asks(t, command.ExitFailure, []string{"the files have other settings than the service was started with: server.http, drain", "next: restart the service, or take the change back"}, name)
	}
	place(t, "ratelimit.yaml", hundredPerDay)
	loaded(2)
	asks(t, command.ExitOK, nil, "status")
}
