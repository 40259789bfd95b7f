package awsdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ErrDenied says that the role of the caller lacks a permission. Errors that wrap it
// wrap limiter.ErrInvalid too: no policy admits a request because of them.
var ErrDenied = errors.New("the store denies access")

// notSentError is an error of a request that got no connection to be written to.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return "not sent: " + e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// Translate turns an error of the SDK into one that wraps two errors: the error of
// limiter.Store for the outcome of the request, and the SDK's, so that reasons and items
// stay in reach of errors.As. limiter.ErrConflict stands for a condition that did not hold.
// An unknown outcome is limiter.ErrUncertain. nil, and errors of limiter, stay as they are.
func Translate(err error) error {
	if kind := KindOf(err); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// TranslateRead is [Translate] for requests that change nothing. Their outcome does not
// matter, so they are never uncertain.
func TranslateRead(err error) error {
	kind := KindOf(err)
	if errors.Is(kind, limiter.ErrUncertain) {
		kind = limiter.ErrUnavailable
	}
	if kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// TranslatePatient is [Translate] for a call whose caller waits. A role can get a permission that it lacks:
// the call is not refused for good.
func TranslatePatient(err error) error {
	if kind := KindOf(err); errors.Is(kind, ErrDenied) {
		return fmt.Errorf("%w: %w: %w", limiter.ErrUnavailable, ErrDenied, err)
	}
	return Translate(err)
}

// ContextError returns the error of a call whose context was done before it began; nil
// when the context is not done.
func ContextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
	}
	return nil
}

// ConditionFailed is the code of the reason of a canceled transaction whose condition did
// not hold.
const ConditionFailed = "ConditionalCheckFailed"

// class is the meaning of an error of the SDK for the call and for DynamoDB.
type class uint8

const (
	unclassed class = iota // no error, or one that says nothing
	conflict               // a condition did not hold
	contended              // not applied, because of a transaction on the item: it may be sent again at once
	throttled              // not applied, for want of capacity: it may be sent again soon
	refused                // not applied, and neither is any other call until something else is mended
	unreached              // not sent
	failed                 // perhaps applied: no answer, or none that can be read
	denied                 // not applied: the role lacks the permission
	wrong                  // not applied: the call itself is wrong
)

// errDenied is the error of the contract for denied.
var errDenied = fmt.Errorf("%w: %w", limiter.ErrInvalid, ErrDenied)

// kind returns the error of the contract for a class; nil for unclassed.
func (c class) kind() error {
	switch c {
	case conflict:
		return limiter.ErrConflict
	case contended, throttled, refused, unreached:
		return limiter.ErrUnavailable
	case failed:
		return limiter.ErrUncertain
	case denied:
		return errDenied
	case wrong:
		return limiter.ErrInvalid
	case unclassed:
	}
	return nil
}

// KindOf returns the error of the contract that an error of the SDK amounts to;
// nil for nil and for an error of the contract.
func KindOf(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{limiter.ErrInvalid, limiter.ErrUnavailable, limiter.ErrUncertain, limiter.ErrClosed, limiter.ErrConflict} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return classOf(err).kind()
}

// classOf classifies an error of the SDK, which may be wrapped in one of the contract.
func classOf(err error) class {
	if err == nil {
		return unclassed
	}
	if errors.Is(err, ErrPaced) {
		return throttled
	}
	if _, ok := errors.AsType[*credentialsError](err); ok { // an answer of their source is none of DynamoDB's
		return refused
	}
	if stranger, ok := errors.AsType[*strangerError](err); ok {
		return classOfStranger(stranger.status)
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return classOfReasons(canceled.CancellationReasons)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if c := classOfCode(api.ErrorCode()); c != unclassed {
			return c
		}
	}
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() != 0 { // 0: no answer
		return classOfStatus(response.HTTPStatusCode())
	}
	return classOfTransport(err)
}

// classOfCode is the table of the codes of errors and of reasons for canceled
// transactions. Only a call that is wrong in itself, and a permission that is missing,
// are held against the request; the rest is DynamoDB being unavailable. A code that
// is not here is unclassed: its status decides.
func classOfCode(code string) class {
	switch code {
	case "ConditionalCheckFailedException", "ConditionalCheckFailed":
		return conflict
	case "TransactionConflictException", "TransactionConflict":
		return contended
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingException", "ThrottlingError", "Throttling",
		"ThrottledException", "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "TooManyRequestsException",
		"LimitExceededException", "SlowDown", "BandwidthLimitExceeded":
		return throttled
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature",
		"IncompleteSignatureException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "ExpiredToken",
		"ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "OptInRequired", "AuthFailure", // credentials
		"InaccessibleEncryptionCredentialsException",                                                                                     // and all of KMS, below
		"ResourceNotFoundException", "TableNotFoundException", "ResourceInUseException", "TableInUseException", "IndexNotFoundException", // the table
		"ItemCollectionSizeLimitExceededException", "ItemCollectionSizeLimitExceeded", // no table of this program's has such collections
		"UnknownOperationException", "InvalidAction", "InvalidEndpointException": // the endpoint is none of DynamoDB's
		return refused
	case "InternalServerError", "InternalFailure", "InternalServerErrorException", "ServiceUnavailable", "ServiceUnavailableException",
		"RequestTimeout", "RequestTimeoutException", "TransactionInProgressException", "ReplicatedWriteConflictException":
		return failed
	case "AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedOperation":
		return denied
	case "ValidationException", "ValidationError", "SerializationException", "IdempotentParameterMismatchException", "DuplicateItemException",
		"DuplicateItem", "MissingParameter", "MissingAction", "InvalidParameterValue", "InvalidParameterCombination", "MalformedQueryString":
		return wrong
	}
	if strings.HasPrefix(code, "KMS") {
		return refused
	}
	return unclassed
}

// classOfReasons is for a transaction that was not applied. A reason that no retry
// mends outweighs those that one would.
func classOfReasons(reasons []types.CancellationReason) class {
	all := contended
	for _, r := range reasons {
		if r.Code == nil || *r.Code == "None" {
			continue
		}
		switch c := classOfCode(*r.Code); c {
		case denied, wrong:
			return c
		case conflict:
			all = conflict
		case contended:
		case throttled:
			if all == contended {
				all = throttled
			}
		case unclassed, refused, unreached, failed: // it was not applied, for certain
			if all != conflict {
				all = refused
			}
		}
	}
	return all
}

// classOfStatus is for an answer without a code that says more.
func classOfStatus(status int) class {
	switch {
	case status == http.StatusTooManyRequests:
		return throttled
	case status >= 300 && status < 500 && status != http.StatusRequestTimeout:
		return refused
	default: // a server's error; or success, with a body that cannot be read
		return failed
	}
}

// classOfStranger is for an answer that is not DynamoDB's: something on the way gave
// it in its place, so the call was not applied; unless it waited for DynamoDB, and in vain.
func classOfStranger(status int) class {
	if status >= 200 && status < 300 {
		return refused
	}
	return classOfStatus(status)
}

// classOfTransport is for a request that got no answer.
func classOfTransport(err error) class {
	if _, ok := errors.AsType[smithy.InvalidParamsError](err); ok {
		return wrong
	}
	if _, ok := errors.AsType[*smithy.SerializationError](err); ok {
		return wrong
	}
	if _, ok := errors.AsType[*notSentError](err); ok {
		return unreached
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return unreached
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return unreached
	}
	return failed
}

// ConditionItem returns the item that a condition was not true of, nil when there was
// none. failed is whether err is about a condition of a single write at all.
func ConditionItem(err error) (found map[string]types.AttributeValue, failed bool) {
	if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return e.Item, true
	}
	return nil, false
}

// ReasonAt returns why the i-th item of a transaction canceled it: the code is
// "" when err says nothing of it.
func ReasonAt(err error, i int) (code string, found map[string]types.AttributeValue) {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || i >= len(canceled.CancellationReasons) || canceled.CancellationReasons[i].Code == nil {
		return "", nil
	}
	r := canceled.CancellationReasons[i]
	return *r.Code, r.Item
}
