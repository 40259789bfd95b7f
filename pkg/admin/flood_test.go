//go:build !race

package admin_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/ratelimit/ratelimit/pkg/admin"
)

// Among many connections that send nothing, each new one has the time to show its token.
func TestDoorInAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token, hash := admin.NewToken()
		var access admin.Access
		access.Set(admin.Credentials{Tokens: []admin.Token{{Name: "a", Role: admin.RoleRead, Hash: hash}}})
		e, _ := newExplainer(t)
		pipe := bufconn.Listen(1 << 10)
		door := admin.NewDoor(pipe, 64)
		server := &http.Server{Handler: admin.NewControl(admin.ControlConfig{Access: &access, Explainer: e}), ConnContext: door.ConnContext, ReadHeaderTimeout: time.Hour}
		go func() { _ = server.Serve(door) }()
		ctx, stop := context.WithCancel(t.Context())
		for i := range 70 {
			pause := time.Millisecond + time.Duration(i)*7*time.Microsecond // many timers due at once crash the race detector of Go 1.26
			go func() {
				for ; ctx.Err() == nil; time.Sleep(pause) {
					c, err := pipe.DialContext(ctx)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, c) // until it is closed
					_ = c.Close()
				}
			}()
		}
		synctest.Wait()
		for range 40 {
			operator, err := pipe.DialContext(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond) // until its request has arrived
			_, _ = io.WriteString(operator, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n")
			if _, err := operator.Read(make([]byte, 4096)); err != nil {
				t.Errorf("the operator is not answered: %v", err)
			}
			_ = operator.Close()
		}
		stop()
		_ = server.Close()
		time.Sleep(time.Second) // for all to end
	})
}
