package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// However much a client sends over HTTP in the life of a connection, it is not closed for it.
func TestHTTPConnectionsLiveOn(t *testing.T) {
	t.Parallel()
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute))
	conns := 0
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conns++
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}
	defer client.CloseIdleConnections()
	text := strings.Repeat(" ", 1<<20)
	for range 140 {
		resp, err := client.Post("http://"+r.http+"/json", "application/json", strings.NewReader("{}"+text[4:]))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if conns != 1 {
		t.Errorf("%d connections, want 1", conns)
	}
}
