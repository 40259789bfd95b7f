package limiter

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Settlements is the part of a [Store] by which every reservation is settled once. It also keeps
// the secrets by which processes recognize their reservations.
type Settlements interface {
	// Settle reports whether m.Owner is the one that settles the reservation: the owner of the
	// first mark that was applied. It reports the same if that owner repeats the call, as it must
	// after an unknown outcome. A mark is kept until m.Expires has passed on every clock of the
	// fleet. These may differ by an hour, and be set back by as much. Until then no other owner
	// wins. At m.Expires and after it no owner wins, by now or by a later time that the store has
	// seen. Settle fails with [ErrInvalid] where [CheckMark] does. On an error the caller must not
	// charge.
	Settle(ctx context.Context, now time.Time, m Mark) (won bool, err error)

	// Secret returns the secret of a name. It is the same for every process that shares the store,
	// as long as the store keeps its records. If there is none it stores candidate; of concurrent
	// calls all get the same one. It fails with [ErrInvalid] where [CheckSecret] does. The secret
	// must not be changed.
	Secret(ctx context.Context, name string, candidate []byte) ([]byte, error)
}

// Bounds of marks and secrets, in bytes.
const (
	MaxMarkLength       = 64 // of a Mark's ID and Owner
	MaxSecretNameLength = 64
	MinSecretLength     = 16
	MaxSecretLength     = 256
)

// Mark claims the settlement of a reservation for an owner. ID and Owner are any bytes.
type Mark struct {
	Namespace string
	ID        string    // of the reservation, 1 to MaxMarkLength bytes
	Owner     string    // of this settlement, random, 1 to MaxMarkLength bytes
	Expires   time.Time // end of the reservation; the same for every Mark of an ID
}

// CheckMark refuses, with ErrInvalid, an ID or Owner that is empty or too long.
func CheckMark(m Mark) error {
	for _, part := range [...]struct{ what, value string }{{"id of a reservation", m.ID}, {"owner of a settlement", m.Owner}} {
		if n := len(part.value); n == 0 || n > MaxMarkLength {
			return fmt.Errorf("%w: the %s has %d bytes; it must have 1 to %d", ErrInvalid, part.what, n, MaxMarkLength)
		}
	}
	return nil
}

// CheckSecret refuses, with ErrInvalid, an invalid name or secret. A name is 1 to
// MaxSecretNameLength lower-case letters, digits and hyphens. A secret has MinSecretLength to
// MaxSecretLength bytes.
func CheckSecret(name string, secret []byte) error {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if name == "" || len(name) > MaxSecretNameLength || strings.Trim(name, allowed) != "" {
		return fmt.Errorf("%w: the name of a secret is %.100q; it must be 1 to %d lower-case letters, digits and hyphens", ErrInvalid, name, MaxSecretNameLength)
	}
	if n := len(secret); n < MinSecretLength || n > MaxSecretLength {
		return fmt.Errorf("%w: secret %s has %d bytes; it must have %d to %d", ErrInvalid, name, n, MinSecretLength, MaxSecretLength)
	}
	return nil
}
