package rls

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

// invalidError is a mistake in the gateway's configuration.
type invalidError struct {
	reason string // label of a metric
	text   string
	denied bool // a client can cause it: an error would let the request pass
}

func (e *invalidError) Error() string { return e.text }

// code returns the code of gRPC for the problem.
func (e *invalidError) code() codes.Code {
	if e.forbidden() {
		return codes.PermissionDenied
	}
	return codes.InvalidArgument
}

// forbidden reports whether the configuration forbids the call.
func (e *invalidError) forbidden() bool { return e == errRefund || e == errCharge }

var (
	errMalformed     = errors.New("not a valid protobuf message")
	errNoDomain      = &invalidError{reason: "no_domain", text: "domain is empty: set domain in the gateway's rate limit configuration"}
	errNoDescriptors = &invalidError{reason: "no_descriptors", text: "no descriptors: the gateway must send at least one"}

	errRefund = &invalidError{reason: "forbidden", text: "refunds are not allowed over /json: the configuration allows them with server.http.refunds: true"}
	errCharge = &invalidError{reason: "forbidden", text: "charges are not allowed over /json: the configuration allows them with server.http.charges: true"}
)

// tooLarge returns the problem of a call that exceeds a bound.
func tooLarge(most int, of string) *invalidError {
	return &invalidError{reason: reasonTooLarge, text: fmt.Sprintf("more than %d %s", most, of), denied: true}
}

// Reasons beside those of limiter.Reason.
const (
	reasonUnmatched  = "unmatched"  // no rule matches, and the policy denies that
	reasonInvalid    = "invalid"    // the limiter refuses the request as invalid
	reasonFailed     = "failed"     // no decision could be made
	reasonOverloaded = "overloaded" // too many calls in flight
	reasonTooLarge   = "too_large"  // larger than that of any gateway
)
