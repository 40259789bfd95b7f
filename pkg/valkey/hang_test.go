package valkey_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/valkey"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// A server that stands still for a time gives nothing twice, holds no call, and is used again
// afterwards.
func TestHang(t *testing.T) {
	t.Parallel()
	for name, hang := range hangs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withLeases(t, func(t *testing.T, change func(*valkey.Config)) {
				server := valkeytest.Start(t)
				_, over := under(t, server.Address, change, func(*load) { hang(t, server) })
				if over > 0 {
					t.Errorf("%d tokens too many", over)
				}
			})
		})
	}
}

var hangs = map[string]func(*testing.T, *valkeytest.Server){
	"stopped for 1 s":  stopFor(time.Second),
	"stopped for 3 s":  stopFor(3 * time.Second),
	"stopped for long": stopFor(longHang),
	"busy script": func(t *testing.T, s *valkeytest.Server) {
		t.Helper()
		s.Must("CONFIG", "SET", "busy-reply-threshold", "100")
		ended := make(chan error, 1)
		go func() {
			_, err := s.Do("EVAL", "while true do end", "0")
			ended <- err
		}()
		time.Sleep(time.Second)
		s.Must("SCRIPT", "KILL")
		if err := <-ended; err == nil {
			t.Error("the script has ended without an error")
		}
	},
}

func stopFor(d time.Duration) func(*testing.T, *valkeytest.Server) {
	return func(_ *testing.T, s *valkeytest.Server) {
		s.Signal(syscall.SIGSTOP)
		time.Sleep(d)
		s.Signal(syscall.SIGCONT)
	}
}
