package main

import (
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// The command finds a server in its environment, and its exit code is passed on.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("needs DynamoDB Local, which -short leaves out")
	}
	t.Setenv(dynamotest.URLVariable, "")
	code, err := run(t.Context(), []string{"sh", "-c", `case "$` + dynamotest.URLVariable + `" in http://127.0.0.1:*) exit 7;; esac`})
	if code != 7 || err != nil {
		t.Errorf("exit code %d, %v; want 7", code, err)
	}
	if _, err := run(t.Context(), nil); err == nil {
		t.Error("no command is no error")
	}
}
