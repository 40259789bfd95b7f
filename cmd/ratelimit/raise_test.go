package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
)

// A caller that has used up its limit is admitted as soon as the file has a greater one,
// and has what the greater one leaves of its use. On every store.
func TestARaisedLimitFreesACaller(t *testing.T) {
	table := onTable(dynamotest.Start(t).URL, dynamotest.TableName(t), "RATE")
	for name, test := range map[string]struct {
		text func(rate string) string
		args []string
	}{
		"memory":   {text: withRate},
		"data":     {text: withRate, args: []string{"--data", filepath.Join(t.TempDir(), "data")}},
		"dynamodb": {text: func(rate string) string { return strings.Replace(table, "RATE", rate, 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "c.yaml", test.text("5/day"))
			r := start(t, append([]string{"--config", file}, test.args...)...)
			for i, want := range []int{200, 200, 200, 200, 200, 429, 429} {
				if code, answer := r.ask(t, "ada"); code != want {
					t.Fatalf("request %d of 5 a day: %d, want %d: %+v", i, code, want, answer)
				}
			}
			rewrite(t, file, test.text("1000/day"))
			var answer *rlsAnswer
			eventually(t, "a request of 1000 a day", func() bool {
				var code int
				code, answer = r.ask(t, "ada")
				return code == http.StatusOK
			})
			if left := answer.Statuses[0].LimitRemaining; left != 994 {
				t.Errorf("%d of 1000 are left after 6 requests, want 994: %+v", left, answer)
			}
			rewrite(t, file, test.text("3/day"))
			eventually(t, "the limit to be 3 a day", func() bool {
				_, answer = r.ask(t, "eve")
				return answer.Statuses[0].CurrentLimit.RequestsPerUnit == 3
			})
			if _, answer = r.ask(t, "ada"); answer.Statuses[0].LimitRemaining != 2 {
				t.Errorf("a limit lowered to 3 says after a request %+v, want 2 left", answer)
			}
		})
	}
}
