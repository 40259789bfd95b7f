package valkey_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// Changes that are under way when a store is closed end at once.
func TestCloseWhileChanging(t *testing.T) {
	server := valkeytest.Start(t)
	limits, err := limiter.NewLimits(limiter.PerSecond("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s := onServer(t, server, nil)
		var work sync.WaitGroup
		for i := range loadCallers {
			work.Go(func() {
				for {
					err := s.PutLimits(context.Background(), "ns"+strconv.Itoa(i), ofEntity, limiter.Record{Limits: limits})
					if errors.Is(err, limiter.ErrClosed) {
						return
					}
					if err != nil {
						t.Errorf("a change beside Close: %v", err)
						return
					}
				}
			})
		}
		time.Sleep(50 * time.Millisecond)
		began := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		work.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("changes went on for %v after Close", took)
		}
	}
}
