package limiter

import "errors"

// The errors of a [Store] and of a [Limiter]. They are wrapped with details; test for them with
// errors.Is. A denial is not among them.
var (
	// ErrInvalid: the call can never succeed in this form, because of a name or number out of range
	// or a cycle in the hierarchy. Nothing was applied.
	ErrInvalid = errors.New("invalid")
	// ErrUnavailable: the store could not be reached in time. Nothing was applied.
	ErrUnavailable = errors.New("store unavailable")
	// ErrUncertain: the store may or may not have applied the call. It must not be repeated
	// blindly.
	ErrUncertain = errors.New("outcome uncertain")
	// ErrClosed: the store or the lease was closed before the call.
	ErrClosed = errors.New("closed")
	// ErrConflict: a record changed since it was read (optimistic lock). Nothing was applied.
	ErrConflict = errors.New("changed since it was read")
	// ErrState: the state of the namespace does not allow the call, see [NamespaceState]. Nothing
	// was applied.
	ErrState = errors.New("not in this state")
	// ErrNotFound: there is no such namespace. Nothing was applied.
	ErrNotFound = errors.New("not found")
)
