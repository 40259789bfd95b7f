package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// The principal of a request over the Unix socket is the user of its process, as the kernel has it.
// No header changes that.
func TestUserOfTheSocket(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	inner, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := admin.PrincipalFrom(r.Context())
		_, _ = io.WriteString(w, p.Name)
	})
	door := admin.NewDoor(inner, 2)
	control := admin.NewControl(admin.ControlConfig{Access: new(admin.Access), Explainer: new(admin.Explainer), Routes: []admin.Route{{Pattern: "GET /who", Role: admin.RoleRead, Handler: who}}})
	server := &http.Server{Handler: control, ConnContext: door.ConnContext, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(door) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/who", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-User", "mallory")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := "socket:" + me.Username; string(got) != want {
			t.Errorf("principal %q, want %q", got, want)
		}
	}
}
