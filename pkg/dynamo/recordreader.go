package dynamo

import (
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// recordReader reads the attributes of one item and keeps the first fault.
type recordReader struct {
	table string
	key   key
	item  map[string]types.AttributeValue
	fault *CorruptError
}

func newRecordReader(table string, k key, item map[string]types.AttributeValue) *recordReader {
	return &recordReader{table: table, key: k, item: item}
}

func (r *recordReader) fail(attr, format string, args ...any) {
	if r.fault == nil {
		r.fault = &CorruptError{Table: r.table, Key: r.key.String(), Attribute: attr, Problem: fmt.Sprintf(format, args...)}
	}
}

// number returns a number as it stands in the item, "" if there is none.
func (r *recordReader) number(attr string) string {
	n, ok := r.item[attr].(*types.AttributeValueMemberN)
	if !ok {
		r.fail(attr, "is %s; it must be a number", typeName(r.item[attr]))
		return ""
	}
	return n.Value
}

// int returns a whole number in a range.
func (r *recordReader) int(attr string, least, most int64) int64 {
	text := r.number(attr)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		r.fail(attr, "is %s; it must be a whole number from %d to %d", text, least, most)
	}
	return n
}

// uint returns a whole number of at least least.
func (r *recordReader) uint(attr string, least uint64) uint64 {
	text := r.number(attr)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least {
		r.fail(attr, "is %s; it must be a whole number from %d", text, least)
	}
	return n
}

func (r *recordReader) bool(attr string) bool {
	b, ok := r.item[attr].(*types.AttributeValueMemberBOOL)
	if !ok {
		r.fail(attr, "is %s; it must be a boolean", typeName(r.item[attr]))
		return false
	}
	return b.Value
}

// text undoes textAttribute.
func (r *recordReader) text(attr string) string {
	switch v := r.item[attr].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	default:
		r.fail(attr, "is %s; it must be a string or binary", typeName(v))
		return ""
	}
}

// optionalText is text for an attribute that may be absent, which is "".
func (r *recordReader) optionalText(attr string) string {
	if _, found := r.item[attr]; !found {
		return ""
	}
	return r.text(attr)
}

// typeName names the type of an attribute for people.
func typeName(v types.AttributeValue) string {
	switch v.(type) {
	case nil:
		return "missing"
	case *types.AttributeValueMemberS:
		return "a string"
	case *types.AttributeValueMemberN:
		return "a number"
	case *types.AttributeValueMemberB:
		return "binary"
	case *types.AttributeValueMemberBOOL:
		return "a boolean"
	case *types.AttributeValueMemberNULL:
		return "null"
	case *types.AttributeValueMemberM:
		return "a map"
	case *types.AttributeValueMemberL:
		return "a list"
	default:
		return "a set"
	}
}
