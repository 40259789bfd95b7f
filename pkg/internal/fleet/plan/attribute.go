package plan

import (
	"bytes"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sortedNames returns the names of attributes in order, so that a write has one form.
func sortedNames(item map[string]types.AttributeValue) []string {
	return slices.Sorted(maps.Keys(item))
}

// sameAttribute compares two attributes of a bucket: numbers in their one form, texts, and bytes.
func sameAttribute(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	}
	return false
}
