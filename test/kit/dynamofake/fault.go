package dynamofake

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/test/kit/clocktest"
)

// Kind is the kind of a fault.
type Kind uint8

// The kinds of faults. After Throttle, Conflict, ServerError and Fail nothing was
// applied; with the others the call is applied.
const (
	None         Kind = iota
	Throttle          // ProvisionedThroughputExceededException
	Conflict          // TransactionConflictException; TransactionCanceledException of a transaction
	ServerError       // InternalServerError, status 500
	Fail              // Fault.Err, as the server's answer
	AppliedError      // applied, then InternalServerError
	LoseReply         // applied, then the connection is reset
	HoldRequest       // applied when Fault.Gate is released, also when the caller has gone by then; without a Gate, when it goes
	HoldReply         // applied; the reply comes when Fault.Gate is released; without a Gate, never
	Duplicate         // applied, and again when Fault.Gate is released; at once without a Gate
	Partial           // a batch of two or more, of which the second half is unprocessed
)

var kindNames = [...]string{
	None: "none", Throttle: "throttle", Conflict: "conflict", ServerError: "server error", Fail: "fail",
	AppliedError: "error after it was applied", LoseReply: "lost reply", HoldRequest: "held request",
	HoldReply: "held reply", Duplicate: "duplicate", Partial: "partial batch",
}

// String names the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Fault is the fault of one call. The zero Fault is none.
type Fault struct {
	Kind Kind
	// Err is the answer for Fail.
	Err error
	// Gate is for HoldRequest, HoldReply and Duplicate. Several faults may share one.
	Gate *Gate
	// Latency is how long the reply takes, after the call was applied; with a
	// context that ends meanwhile the reply is lost. 0 = none.
	Latency time.Duration
}

// Before is the answer to a call that is not applied, nil for one that is.
func (f Fault) Before(op string) error {
	switch f.Kind {
	case Throttle:
		return answered(op, &types.ProvisionedThroughputExceededException{Message: aws.String("The level of configured provisioned throughput for the table was exceeded.")})
	case Conflict:
		if op == "TransactWriteItems" {
			return answered(op, cancelledBy([]types.CancellationReason{{Code: aws.String("TransactionConflict"), Message: aws.String("Transaction is ongoing for the item")}}))
		}
		return answered(op, &types.TransactionConflictException{Message: aws.String("Transaction is ongoing for the item")})
	case ServerError:
		return answered(op, &types.InternalServerError{Message: aws.String("Internal server error")})
	case Fail:
		return answered(op, f.Err)
	case None, AppliedError, LoseReply, HoldRequest, HoldReply, Duplicate, Partial:
	}
	return nil
}

// after is the error that a caller gets in place of the reply to a call that was
// applied.
func (f Fault) after(ctx context.Context, op string) error {
	if f.Kind == HoldReply && !f.Gate.Wait(ctx, nil) {
		return canceled(ctx, op)
	}
	if f.Latency > 0 && !clocktest.Pause(ctx, f.Latency) {
		return canceled(ctx, op)
	}
	if f.Kind == LoseReply {
		return lost(op)
	}
	if f.Kind == AppliedError {
		return answered(op, &types.InternalServerError{Message: aws.String("Internal server error")})
	}
	return nil
}
