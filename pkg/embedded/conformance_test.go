package embedded_test

import (
	"context"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store {
		s := embedded.New(embedded.Config{})
		t.Cleanup(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}

func TestDurableConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) limiter.Store {
		s, err := embedded.Open(t.TempDir(), embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}
