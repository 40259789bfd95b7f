package catalog

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const testNS = "AbCdEfGhIj0"

// attributes is short for the SDK's type of an item.
type attributes = map[string]types.AttributeValue

func avS(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func avN(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }
func mustLimits(t rapid.TB, limits ...limiter.Limit) *limiter.Limits {
	t.Helper()
	l, err := limiter.NewLimits(limits...)
	if err != nil {
		t.Fatalf("NewLimits: %v", err)
	}
	return l
}
