package items

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Codes of DynamoDB that package awsdb knows. Each says how a call ended.
const (
	codeContended = "TransactionConflictException" // not applied, and may be sent again at once
	codeThrottled = "ThrottlingException"          // not applied, for want of room or time
	codeRefused   = "ResourceNotFoundException"    // not applied, and neither is any other call now
	codeDenied    = "AccessDeniedException"        // not applied: the user lacks a permission
	codeWrong     = "ValidationException"          // not applied: the call itself is wrong
)

// ErrHistory says that a call was not applied: it belongs to another history of the server.
var ErrHistory error = &smithy.GenericAPIError{Code: codeContended, Message: "the server of the store has another history, so that nothing of before is applied"}

// errNoAnswer is of a call that no server has answered.
var errNoAnswer = errors.New("the server gave no answer")

// ErrLost says that the table is not there any more: the server came back without its data.
var ErrLost = errors.New("the server of the store has lost the table")

// refused is an error of a call that was not applied, and that no other call now is.
func refused(err error) error {
	return fmt.Errorf("%w: %w", &smithy.GenericAPIError{Code: codeRefused, Message: "the call is refused"}, err)
}

// answers are the first words of the server's errors, by the code that they amount to. All of them say
// that nothing was applied: the script writes when all is worked out. A script that fails between its writes
// says partial. One that is not here is that of a wrong call. A server that only just changes its role, or reads its files, is one that is asked again
// soon, as one without capacity is.
var answers = map[string]string{
	"OOM": codeThrottled, "BUSY": codeThrottled, "TRYAGAIN": codeThrottled, "UNKILLABLE": codeThrottled,
	"READONLY": codeThrottled, "MASTERDOWN": codeThrottled, "LOADING": codeThrottled,
	"MOVED": codeThrottled, "ASK": codeThrottled, "CLUSTERDOWN": codeThrottled,
	"NOAUTH": codeRefused, "WRONGPASS": codeRefused, "NOREPLICAS": codeRefused, "MISCONF": codeRefused,
	"NOPERM": codeDenied,
	"LATE":   codeContended, // see batch
}

// movedKey begins the error of a script that meets a key which has moved to another server of a cluster, while its slot
// moves. It has no code.
const movedKey = "Script attempted to access a non local key"

// partial is the first word of the error of a script that failed between its writes.
const partial = "PARTIAL"

// translate turns an error of the client into one that package awsdb knows. closed says that this process
// closed it. A call that got no answer may be applied.
func translate(err error, closed bool) error {
	switch {
	case !errors.Is(err, rueidis.ErrClosing):
	case closed:
		return limiter.ErrClosed
	default: // another connection took the place of this one before the call was sent
		return &smithy.GenericAPIError{Code: codeContended, Message: "the connection was closed before the call was sent"}
	}
	if err == nil || errors.Is(err, ErrHistory) || errors.Is(err, ErrLost) || errors.Is(err, limiter.ErrInvalid) {
		return err
	}
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	word := firstWord(answer.Error())
	if word == partial {
		return fmt.Errorf("%w: %w", limiter.ErrUncertain, answer)
	}
	code, ok := answers[word]
	switch {
	case ok:
	case strings.HasPrefix(answer.Error(), movedKey):
		code = codeThrottled
	default:
		code = codeWrong
	}
	return &smithy.GenericAPIError{Code: code, Message: answer.Error()}
}

// firstWord returns the code of an error of the server.
func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// isAnswer reports whether an error is an answer of the server with a code.
func isAnswer(err error, codes ...string) bool {
	answer, ok := rueidis.IsRedisErr(err)
	if !ok {
		return false
	}
	return slices.Contains(codes, firstWord(answer.Error()))
}

const conditionText = "The conditional request failed"

// conditionFailed is the error of a write whose condition did not hold. It shows the item as it is where that is asked for.
func conditionFailed(item attributes, shows bool) error {
	if !shows {
		item = nil
	}
	return &types.ConditionalCheckFailedException{Message: aws.String(conditionText), Item: item}
}

// wrong is the error of a call that this package cannot make of its input, or of an item.
func wrong(err error) error {
	return fmt.Errorf("%w: %w", limiter.ErrInvalid, err)
}

// wrongReply is the error of a reply that the scripts never give. The writes may be applied.
func wrongReply(text string) error {
	return fmt.Errorf("%w: a reply of the server %s", limiter.ErrUncertain, text)
}
