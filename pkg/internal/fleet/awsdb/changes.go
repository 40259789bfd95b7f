package awsdb

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const changesSince = "CHANGES_SINCE_"

// ChangesSince returns the ReturnValues of an update whose sender knows the item of a serial number. If that
// item was updated, the reply has no attributes, and the client has seen that it is that to the call. Else it has the
// whole item, as after ALL_NEW. DynamoDB has no such reply: only a server that runs scripts is asked for it.
func ChangesSince(serial int64) types.ReturnValue {
	return types.ReturnValue(changesSince + strconv.FormatInt(serial, 10))
}

// SerialOf returns the serial number of [ChangesSince], as text.
func SerialOf(v types.ReturnValue) (serial string, ok bool) {
	return strings.CutPrefix(string(v), changesSince)
}
