package limiter

import "errors"

// The errors of a [Store] and of a [Limiter]. They are wrapped with what went
// wrong; test for them with errors.Is. A denial is not among them.
var (
	// ErrInvalid says that the call can never succeed as it is: a name or number
	// out of range, a cycle in the hierarchy. Nothing was applied.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable says that the store could not be asked in time. Nothing was applied.
	ErrUnavailable = errors.New("store unavailable")
	// ErrUncertain says that the store may or may not have applied the call. It
	// must not be repeated blindly.
	ErrUncertain = errors.New("outcome uncertain")
	// ErrClosed says that the store or the lease was closed before the call.
	ErrClosed = errors.New("closed")
	// ErrConflict says that a record changed since it was read (optimistic lock).
	// Nothing was applied.
	ErrConflict = errors.New("changed since it was read")
	// ErrState says that the state of the namespace does not allow the call, see
	// [NamespaceState]. Nothing was applied.
	ErrState = errors.New("not in this state")
	// ErrNotFound says that there is no such namespace. Nothing was applied.
	ErrNotFound = errors.New("not found")
)
