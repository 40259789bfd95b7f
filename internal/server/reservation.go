package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/reservation"
)

// reservationSecret names the key that the store keeps.
const reservationSecret = "reservation-key"

// storedKey is the key that the store keeps.
type storedKey struct {
	ring atomic.Pointer[reservation.Keyring] // nil = not read yet
}

// keyring returns the keys that seal the ids of reservations: the configured keys,
// else the one in the store, which is read once.
func (k *storedKey) keyring(ctx context.Context, store limiter.Store, cfg config.Reservation) (*reservation.Keyring, error) {
	if len(cfg.Keys) > 0 {
		ring, err := reservation.NewKeyring(cfg.Keys...)
		if err != nil {
			return nil, fmt.Errorf("reservation.keys: %w", err)
		}
		return ring, nil
	}
	if ring := k.ring.Load(); ring != nil {
		return ring, nil
	}
	candidate := make([]byte, 32)
	if _, err := rand.Read(candidate); err != nil {
		return nil, err
	}
	key, err := store.Secret(ctx, reservationSecret, candidate)
	if err != nil {
		return nil, fmt.Errorf("the key of reservations in the store: %w", err)
	}
	ring, err := reservation.NewKeyring(key)
	if err != nil {
		return nil, fmt.Errorf("the key of reservations in the store: %w", err)
	}
	k.ring.Store(ring)
	return ring, nil
}

// newLedgerMetrics reports pending charges.
func newLedgerMetrics(stats func() reservation.LedgerStats) *StatsMetrics[reservation.LedgerStats] {
	m := &StatsMetrics[reservation.LedgerStats]{Prefix: "ratelimit_", Look: stats}
	m.Gauge("kept_bookings", "Pending charges, refunds and settlements.", func(s *reservation.LedgerStats) float64 { return float64(s.Kept) })
	m.Count("kept_bookings_booked_total", "Pending charges, refunds and settlements that were recorded.", func(s *reservation.LedgerStats) int64 { return s.Booked })
	m.Count("kept_bookings_lost_total", "Charges, refunds and settlements lost: the queue was full, or the process ended.", func(s *reservation.LedgerStats) int64 { return s.Lost })
	m.Count("uncertain_bookings_total", "Charges, refunds and settlements with an unknown outcome, not recorded again.", func(s *reservation.LedgerStats) int64 { return s.Uncertain })
	return m
}
