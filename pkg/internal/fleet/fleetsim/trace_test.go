package fleetsim_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

var (
	oneSeed = flag.Int64("seed", -1, "TestSimulate: run the fleet of this seed only")
	traced  = flag.Bool("messages", false, "TestSimulate: with -seed, print each message and each decision")
)

// tracef prints an event, if tracing is on.
func (f *fleet) tracef(format string, args ...any) {
	if *traced && *oneSeed >= 0 {
		f.t.Logf("%v "+format, append([]any{time.Duration(f.now)}, args...)...)
	}
}

// traceUpdate prints an update with its names and values in place.
func (f *fleet) traceUpdate(p *process, in *dynamodb.UpdateItemInput) {
	if !*traced || *oneSeed < 0 {
		return
	}
	var pairs []string
	for name, attr := range in.ExpressionAttributeNames {
		pairs = append(pairs, name, attr)
	}
	for name, value := range in.ExpressionAttributeValues {
		pairs = append(pairs, name, show(value))
	}
	var order []int
	for i := 0; i < len(pairs); i += 2 {
		order = append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return len(pairs[b]) - len(pairs[a]) })
	text := fmt.Sprintf("%s IF %s", *in.UpdateExpression, *in.ConditionExpression)
	for _, i := range order {
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	f.tracef("replica %d sends to %s %s", p.index, show(in.Key[schema.AttrPK]), text)
}

// show returns a value as text.
func show(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return hex.EncodeToString(v.Value)
	}
	return "?"
}

// idOf returns the attribute that an update puts its id into, and the id.
func idOf(in *dynamodb.UpdateItemInput) (attr, id string) {
	for name, attr := range in.ExpressionAttributeNames {
		if !strings.HasPrefix(attr, schema.AttrSlot) && !strings.HasPrefix(attr, schema.AttrBooked) {
			continue
		}
		if _, value, ok := strings.Cut(*in.UpdateExpression, name+"="); ok {
			end := strings.IndexAny(value+" ", ", ")
			return attr, show(in.ExpressionAttributeValues[value[:end]])
		}
	}
	return "", ""
}

// addedBy returns the amount that an update adds to an attribute.
func addedBy(in *dynamodb.UpdateItemInput, attr string) int64 {
	for name, is := range in.ExpressionAttributeNames {
		if _, value, ok := strings.Cut(*in.UpdateExpression, name+" "); ok && is == attr {
			end := strings.IndexAny(value+" ", ", ")
			return parseNumber(in.ExpressionAttributeValues[value[:end]])
		}
	}
	return 0
}

// boundOf returns the bound of an attribute that an update sets, if it has one.
func boundOf(in *dynamodb.UpdateItemInput, attr string) (bound types.AttributeValue, ok bool) {
	for name, is := range in.ExpressionAttributeNames {
		if is != attr || in.ConditionExpression == nil || !strings.Contains(*in.UpdateExpression, name+"=") {
			continue
		}
		if _, value, found := strings.Cut(*in.ConditionExpression, name+"<="); found {
			end := strings.IndexByte(value+" ", ' ')
			return in.ExpressionAttributeValues[value[:end]], true
		}
	}
	return nil, false
}
