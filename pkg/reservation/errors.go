package reservation

import (
	"errors"
	"time"
)

// The errors of [Keyring.Seal] and [Keyring.Open]. They are wrapped with what went
// wrong; test for them with errors.Is. None of them quotes an id or a key.
var (
	// ErrTooLong says that a reservation holds too much for an id of MaxLength
	// characters: its names are too long, or its limits too many.
	ErrTooLong = errors.New("reservation is too long for an id")
	// ErrMalformed says that a text is no id, or one of a version that this program
	// does not know.
	ErrMalformed = errors.New("malformed reservation id")
	// ErrForged says that no key of the keyring sealed the id as it is: it was
	// invented or altered, or its key was removed.
	ErrForged = errors.New("forged reservation id")
	// ErrExpired says that the id is genuine and its time is over; see [ExpiredError].
	ErrExpired = errors.New("expired reservation id")
)

// ExpiredError is the error of an id whose time is over. It wraps [ErrExpired].
type ExpiredError struct {
	Expired time.Time // the reservation's Expires
}

// Error says since when the id cannot be settled.
func (e *ExpiredError) Error() string {
	return ErrExpired.Error() + ": it expired on " + e.Expired.UTC().Format(time.RFC3339Nano)
}

// Unwrap returns [ErrExpired].
func (e *ExpiredError) Unwrap() error { return ErrExpired }

// Reason returns why an id was refused as one word, for a label of a metric:
// "malformed", "forged" or "expired"; "" for any other error.
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
