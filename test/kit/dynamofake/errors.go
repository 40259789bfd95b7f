package dynamofake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// ErrUnsupported is returned for a feature of DynamoDB that this package does not
// have. It is no error of the SDK, so that a test that runs into it fails.
var ErrUnsupported = errors.New("not supported by dynamofake")

// invalid is the ValidationException, for which the SDK has no type.
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationException", Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

func noTable() error {
	return &types.ResourceNotFoundException{Message: aws.String("Cannot do operations on a non-existent table")}
}

func conditionFailed(old item) error {
	return &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed"), Item: old}
}

// answered wraps an error of the server as the SDK does for a reply with a status.
func answered(op string, err error) error {
	if errors.Is(err, ErrUnsupported) {
		return &smithy.OperationError{ServiceID: serviceID, OperationName: op, Err: err}
	}
	status := http.StatusBadRequest
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorFault() == smithy.FaultServer {
		status = http.StatusInternalServerError
	}
	response := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}
	return &smithy.OperationError{ServiceID: serviceID, OperationName: op, Err: &awshttp.ResponseError{
		RequestID:     "dynamofake",
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: response}, Err: err},
	}}
}

// lost is the error of the SDK when the connection breaks before the reply.
func lost(op string) error {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	return &smithy.OperationError{ServiceID: serviceID, OperationName: op, Err: &smithyhttp.RequestSendError{Err: reset}}
}

// canceled is the error of the SDK when the context ends before the reply.
func canceled(ctx context.Context, op string) error {
	return &smithy.OperationError{ServiceID: serviceID, OperationName: op, Err: &smithy.CanceledError{Err: ctx.Err()}}
}

const serviceID = "DynamoDB"

func cancelledBy(reasons []types.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = aws.ToString(r.Code)
	}
	return &types.TransactionCanceledException{
		Message:             aws.String(fmt.Sprintf("Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))),
		CancellationReasons: reasons,
	}
}
