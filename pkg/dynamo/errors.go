package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// ErrDenied says that DynamoDB refused the caller: no permission, a wrong or
// expired credential, a clock too far off for a signature. Errors that wrap it
// wrap limiter.ErrInvalid too, so that a wrong policy never admits requests.
var ErrDenied = errors.New("DynamoDB denies access")

// notSentError is an error of a request that got no connection to be written to.
type notSentError struct{ err error }

func (e *notSentError) Error() string { return "not sent: " + e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// CorruptError says that an item of the table is not as this program writes it.
// It wraps limiter.ErrInvalid: such an item is never taken for one that is absent.
type CorruptError struct {
	Table     string
	Key       string // of the item
	Attribute string
	Problem   string // what it is, and what it should be
}

// Error names the item, the attribute, and what would be right.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("item %s of table %s is corrupt: attribute %s %s", e.Key, e.Table, e.Attribute, e.Problem)
}

// Unwrap returns limiter.ErrInvalid.
func (e *CorruptError) Unwrap() error { return limiter.ErrInvalid }

// translate turns an error of the SDK into one that wraps the error of
// limiter.Store that says what became of the request, and the SDK's error, so
// that reasons and items stay in reach of errors.As. ErrConflict stands for a
// condition that did not hold. An error in doubt counts as uncertain.
func translate(err error) error {
	if kind := kindOf(err); kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// translateRead is translate for requests that change nothing: what became of
// them does not matter, so they are never uncertain.
func translateRead(err error) error {
	kind := kindOf(err)
	if errors.Is(kind, limiter.ErrUncertain) {
		kind = limiter.ErrUnavailable
	}
	if kind != nil {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// contextError is the error of a call whose context was done before it began;
// nil when it is not.
func contextError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", limiter.ErrUnavailable, err)
	}
	return nil
}

// errDenied is what kindOf returns for ErrDenied.
var errDenied = fmt.Errorf("%w: %w", limiter.ErrInvalid, ErrDenied)

// kindOf returns the error of the contract that an error of the SDK amounts to;
// nil for nil and for an error of the contract.
func kindOf(err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []error{limiter.ErrInvalid, limiter.ErrUnavailable, limiter.ErrUncertain, limiter.ErrClosed, limiter.ErrConflict} {
		if errors.Is(err, known) {
			return nil
		}
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return kindOfReasons(canceled.CancellationReasons)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if kind := kindOfCode(api.ErrorCode()); kind != nil {
			return kind
		}
	}
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && response.HTTPStatusCode() != 0 { // 0: no answer
		return kindOfStatus(response.HTTPStatusCode())
	}
	return kindOfTransport(err)
}

func kindOfCode(code string) error {
	switch code {
	case "ConditionalCheckFailedException":
		return limiter.ErrConflict
	case "ProvisionedThroughputExceededException", "ThrottlingException", "Throttling", "ThrottledException", "RequestLimitExceeded", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "LimitExceededException", "SlowDown", "BandwidthLimitExceeded", "TransactionConflictException":
		return limiter.ErrUnavailable
	case "InternalServerError", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout", "RequestTimeoutException",
		"TransactionInProgressException", "ReplicatedWriteConflictException":
		return limiter.ErrUncertain
	case "AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedOperation", "UnrecognizedClientException", "InvalidClientTokenId",
		"InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature", "IncompleteSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "ExpiredToken", "ExpiredTokenException", "RequestExpired", "RequestTimeTooSkewed", "OptInRequired", "AuthFailure":
		return errDenied
	case "ValidationException", "ValidationError", "ResourceNotFoundException", "ResourceInUseException", "SerializationException", "IdempotentParameterMismatchException",
		"ItemCollectionSizeLimitExceededException", "MissingParameter", "MissingAction", "InvalidAction", "InvalidParameterValue", "InvalidParameterCombination",
		"UnknownOperationException", "MalformedQueryString":
		return limiter.ErrInvalid
	default:
		return nil
	}
}

// kindOfReasons is for a transaction that was not applied. One reason that no
// retry mends outweighs those that one would.
func kindOfReasons(reasons []types.CancellationReason) error {
	kind := limiter.ErrUnavailable
	for _, r := range reasons {
		if r.Code == nil {
			continue
		}
		switch *r.Code {
		case "None", "TransactionConflict", "ProvisionedThroughputExceeded", "ThrottlingError":
		case "ConditionalCheckFailed":
			kind = limiter.ErrConflict
		case "AccessDenied":
			return errDenied
		default:
			return limiter.ErrInvalid
		}
	}
	return kind
}

// kindOfStatus is for an answer without a code that says more.
func kindOfStatus(status int) error {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return errDenied
	case status == http.StatusTooManyRequests:
		return limiter.ErrUnavailable
	case status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		return limiter.ErrInvalid
	default: // a server's error; or success, with a body that cannot be read
		return limiter.ErrUncertain
	}
}

// kindOfTransport is for a request that got no answer.
func kindOfTransport(err error) error {
	if _, ok := errors.AsType[smithy.InvalidParamsError](err); ok {
		return limiter.ErrInvalid
	}
	if _, ok := errors.AsType[*smithy.SerializationError](err); ok {
		return limiter.ErrInvalid
	}
	if _, ok := errors.AsType[*notSentError](err); ok {
		return limiter.ErrUnavailable
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return limiter.ErrUnavailable
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return limiter.ErrUnavailable
	}
	return limiter.ErrUncertain
}

// conditionItem returns the item that a condition was not true of, nil when there
// was none, and whether err is about a condition of a single write at all.
func conditionItem(err error) (found map[string]types.AttributeValue, failed bool) {
	if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return e.Item, true
	}
	return nil, false
}

// reasonAt returns why the i-th item of a transaction canceled it: the code is
// "" when err says nothing of it.
func reasonAt(err error, i int) (code string, found map[string]types.AttributeValue) {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || i >= len(canceled.CancellationReasons) || canceled.CancellationReasons[i].Code == nil {
		return "", nil
	}
	r := canceled.CancellationReasons[i]
	return *r.Code, r.Item
}
