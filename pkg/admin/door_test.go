package admin_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// Connections that send nothing are closed for others; those that have shown a token stay.
func TestDoor(t *testing.T) {
	token, hash := admin.NewToken()
	var access admin.Access
	access.Set(admin.Credentials{Tokens: []admin.Token{{Name: "a", Role: admin.RoleRead, Hash: hash}}})
	e, _ := newExplainer(t)
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door := admin.NewDoor(inner, 2)
	server := &http.Server{Handler: admin.NewControl(admin.ControlConfig{Access: &access, Explainer: e}), ConnContext: door.ConnContext, ReadHeaderTimeout: time.Hour}
	served := make(chan error, 1)
	go func() { served <- server.Serve(door) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	dial := func() net.Conn {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		return c
	}
	shows := func(c net.Conn) bool {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		_, err := c.Read(make([]byte, 4096))
		return err == nil
	}
	first := dial()
	if !shows(first) {
		t.Fatal("the first is not answered")
	}
	for range 10 {
		dial() // and sends nothing
	}
	second := dial()
	if !shows(second) || !shows(first) {
		t.Error("strangers keep those out that show a token")
	}
	if shows(dial()) {
		t.Error("a third is answered, want that it is closed")
	}
	_ = second.Close()
	for end := time.Now().Add(time.Minute); !shows(dial()); { // there is room when the server has seen the close
		if time.Now().After(end) {
			t.Fatal("its place is not free")
		}
	}
}
