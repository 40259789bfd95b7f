package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// A caller that has used up its limit is admitted as soon as the file has a greater one.
// It then has the greater limit less its use. On every store.
func TestARaisedLimitFreesACaller(t *testing.T) {
	t.Run("memory", func(t *testing.T) { raiseOne(t, withRate) })
	t.Run("data", func(t *testing.T) { raiseOne(t, withRate, "--data", filepath.Join(t.TempDir(), "data")) })
	t.Run("dynamodb", func(t *testing.T) {
		table := onTable(dynamotest.Start(t).URL, dynamotest.TableName(t), "RATE")
		raiseOne(t, func(rate string) string { return strings.Replace(table, "RATE", rate, 1) })
	})
}

// raiseOne runs the program with a file that text gives for a rate.
func raiseOne(t *testing.T, text func(rate string) string, args ...string) {
	t.Helper()
	file := programtest.WriteFile(t, "c.yaml", text("5/day"))
	r := start(t, append([]string{"--config", file}, args...)...)
	for i, want := range []int{200, 200, 200, 200, 200, 429, 429} {
		if code, answer := r.ask(t, "ada"); code != want {
			t.Fatalf("request %d of 5 a day: %d, want %d: %+v", i, code, want, answer)
		}
	}
	rewrite(t, file, text("1000/day"))
	var answer *rlsAnswer
	eventually(t, "a request of 1000 a day", func() bool {
		var code int
		code, answer = r.ask(t, "ada")
		return code == http.StatusOK
	})
	if left := answer.Statuses[0].LimitRemaining; left != 994 {
		t.Errorf("%d of 1000 are left after 6 requests, want 994: %+v", left, answer)
	}
	rewrite(t, file, text("3/day"))
	eventually(t, "the limit to be 3 a day", func() bool {
		_, answer = r.ask(t, "eve")
		return answer.Statuses[0].CurrentLimit.RequestsPerUnit == 3
	})
	_, answer = r.ask(t, "ada")
	if answer.Statuses[0].LimitRemaining != 2 {
		t.Errorf("a limit lowered to 3 says after a request %+v, want 2 left", answer)
	}
}
