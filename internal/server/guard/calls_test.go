package guard

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// Calls and streams find their connection, with and without TLS.
func TestCallsAreWatched(t *testing.T) {
	certs := httptest.NewTLSServer(nil)
	defer certs.Close()
	for name, creds := range map[string][2]credentials.TransportCredentials{
		"plain": {insecure.NewCredentials(), insecure.NewCredentials()},
		"TLS": {
			credentials.NewTLS(&tls.Config{Certificates: certs.TLS.Certificates, MinVersion: tls.VersionTLS12}),
			credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}), // #nosec G402 -- a test's certificate
		},
	} {
		g := New(Config{})
		inner, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer(append(g.Options(creds[0]), grpc.WaitForHandlers(true))...)
		healthpb.RegisterHealthServer(g.Server(server), health.NewServer())
		go func() { _ = server.Serve(g.Listener(inner)) }()
		conn, err := grpc.NewClient(inner.Addr().String(), grpc.WithTransportCredentials(creds[1]))
		if err != nil {
			t.Fatal(err)
		}
		client := healthpb.NewHealthClient(conn)
		used := func(what string) {
			all := g.all()
			if len(all) != 1 || all[0].used.Swap(0) == 0 {
				t.Errorf("%s: %s: %d connections, and the first was not used", name, what, len(all))
			}
		}
		if _, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
			t.Error(err)
		}
		used("a call")
		stream, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Error(err)
		}
		used("a stream")
		for end := time.Now().Add(time.Minute); g.Receiving() != 0 || g.Streams() != 1 || g.stuck() != 0; { // the call has ended here before it ends there
			if time.Now().After(end) {
				t.Fatalf("%s: %d messages are awaited, %d streams, %d of them stuck; want 0, 1, 0", name, g.Receiving(), g.Streams(), g.stuck())
			}
		}
		_ = conn.Close()
		server.Stop()
		atRest(t, g)
	}
}
