package cli

import (
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/cobra"
)

// A service that demands a certificate ends the handshake with an alert, which is a refusal.
func TestAlertIsRefusal(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	for range 20 { // the alert arrives during the write or the read
		resp, err := s.Client().Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
			t.Fatal("a request without a certificate was answered")
		}
		if !isRefusal(err) {
			t.Fatalf("%v is taken for an outage", err)
		}
	}
}

// A command ends with an error at a server that answers anything with the same JSON.
func TestStrangersEndCommands(t *testing.T) {
	const empty, circle = `{"ok": true}`, `{"items": [], "next": "x"}`
	for args, answer := range map[string]string{
		"list usage -o csv":             circle,
		"purge namespace web --yes":     empty,
		"explain shop user=ada":         empty,
		"explain shop user=ada -o json": empty,
		"status":                        empty,
		"get entity user/ada":           empty,
		"console":                       empty,
	} {
		t.Run(args, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked.Add(1) > 3 {
					t.Error("the command asks again and again")
					_, _ = io.WriteString(w, `{"items": [], "deleted": 0, "done": true}`)
					return
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer s.Close()
			root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(NewList(), NewPurge(), NewExplain(), NewStatus(), NewGet(), NewConsole())
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetArgs(append(strings.Fields(args), "--server", s.URL))
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer like this service") {
				t.Errorf("error %v", err)
			}
		})
	}
}
