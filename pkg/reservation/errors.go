package reservation

import (
	"errors"
	"time"
)

// The errors of [Keyring.Seal] and [Keyring.Open]. They are wrapped with details; test for them
// with errors.Is. None of them quotes an id or a key.
var (
	// ErrTooLong: a reservation does not fit in an id of MaxLength characters. Its names are too
	// long, or it has too many limits.
	ErrTooLong = errors.New("reservation is too long for an id")
	// ErrMalformed: a text is no id, or its version is unknown to this program.
	ErrMalformed = errors.New("malformed reservation id")
	// ErrForged: no key of the keyring sealed the id in this form. It was invented or altered, or
	// its key was removed.
	ErrForged = errors.New("forged reservation id")
	// ErrExpired: the id is genuine and has expired; see [ExpiredError].
	ErrExpired = errors.New("expired reservation id")
)

// ExpiredError is the error of an id that has expired. It wraps [ErrExpired].
type ExpiredError struct {
	Expired time.Time // the reservation's Expires
}

// Error returns the text with the time of expiry.
func (e *ExpiredError) Error() string {
	return ErrExpired.Error() + ": it expired on " + e.Expired.UTC().Format(time.RFC3339Nano)
}

// Unwrap returns [ErrExpired].
func (e *ExpiredError) Unwrap() error { return ErrExpired }

// Reason returns the cause of a refusal as one word, for a label of a metric: "malformed", "forged"
// or "expired"; "" for any other error.
func Reason(err error) string {
	switch {
	case errors.Is(err, ErrMalformed):
		return "malformed"
	case errors.Is(err, ErrForged):
		return "forged"
	case errors.Is(err, ErrExpired):
		return "expired"
	default:
		return ""
	}
}
