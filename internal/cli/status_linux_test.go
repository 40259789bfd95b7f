package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/ratelimit/ratelimit/pkg/api"
)

// A terminal of ten lines shows what needs a person.
func TestASmallTerminalShowsTheProblems(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := api.Status{Version: "v1", Started: time.Now(), Problems: []api.StatusProblem{{What: "first", Do: "this"}, {What: "second", Do: "that"}}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s) // an error is one of the command, too
	}))
	defer service.Close()
	user, program := terminal(t)
	if err := unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 80}); err != nil {
		t.Fatal(err)
	}
	cmd := new(cobra.Command)
	cmd.SetContext(t.Context())
	cmd.SetIn(program)
	cmd.SetOut(program)
	ended := make(chan error, 1)
	f := statusFlags{interval: time.Hour}
	f.server, f.way = service.URL, "by --server"
	go func() { ended <- f.show(cmd, api.NewClient(http.DefaultClient, service.URL)) }()
	await(t, user, "next: that")
	if _, err := user.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	await(t, user, leave)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
