package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/embedded"
)

// backupFile returns the name of a backup.
func backupFile(t *testing.T) string {
	t.Helper()
	store, err := embedded.Open(t.TempDir(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.WithoutCancel(t.Context())) }()
	file, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err == nil {
		_, err = store.Backup(file)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// Only the answer of the service says that a backup is restored: another server may answer 200 to anything.
func TestRestoreNeedsTheAnswerOfTheService(t *testing.T) {
	backup := backupFile(t)
	for answer, want := range map[string]string{
		admin.Restored + "\n":                "",
		"":                                   "does not answer like this service",
		"<html>It works!</html>":             "does not answer like this service",
		admin.Restored + " later, perhaps\n": "does not answer like this service",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, answer)
		}))
		var said strings.Builder
		err := (&restoreFlags{connection: connection{server: s.URL}}).restore(t.Context(), backup, &said, io.Discard)
		s.Close()
		if got := err == nil; got != (want == "") || err != nil && !strings.Contains(err.Error(), want) || got != strings.Contains(said.String(), backup) {
			t.Errorf("%q: %v, %q; want %q", answer, err, said.String(), want)
		}
	}
}
