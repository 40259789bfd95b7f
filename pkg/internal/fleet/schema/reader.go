package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Reader reads the attributes of one item and keeps the first fault. After a fault its
// methods return numbers out of range or empty texts, so Fault is to be checked once, at
// the end.
type Reader struct {
	table string
	key   Key
	Item  map[string]types.AttributeValue
	Fault *CorruptError // nil = none so far
}

// NewReader returns a reader of the item with a key. Errors name the table and the key.
func NewReader(table string, k Key, item map[string]types.AttributeValue) *Reader {
	return &Reader{table: table, key: k, Item: item}
}

// Fail notes a fault of an attribute, unless there was one before. The text goes on the
// sentence that begins with the attribute's name.
func (r *Reader) Fail(attr, format string, args ...any) {
	if r.Fault == nil {
		r.Fault = &CorruptError{Table: r.table, Key: r.key.String(), Attribute: attr, Problem: fmt.Sprintf(format, args...)}
	}
}

// Number returns a number as it stands in the item, "" if there is none.
func (r *Reader) Number(attr string) string {
	n, ok := r.Item[attr].(*types.AttributeValueMemberN)
	if !ok {
		r.Fail(attr, "is %s; it must be a number", TypeName(r.Item[attr]))
		return ""
	}
	return n.Value
}

// Int returns a whole number in a range.
func (r *Reader) Int(attr string, least, most int64) int64 {
	text := r.Number(attr)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		r.Fail(attr, "is %s; it must be a whole number from %d to %d", text, least, most)
	}
	return n
}

// Optional is [Reader.Int] for an attribute that may be absent; ok says whether it is there.
func (r *Reader) Optional(attr string, least, most int64) (n int64, ok bool) {
	if _, ok := r.Item[attr]; !ok {
		return 0, false
	}
	return r.Int(attr, least, most), true
}

// Uint returns a whole number of at least least.
func (r *Reader) Uint(attr string, least uint64) uint64 {
	text := r.Number(attr)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least {
		r.Fail(attr, "is %s; it must be a whole number from %d", text, least)
	}
	return n
}

// counter returns a counter, from 1 to MaxCounter.
func (r *Reader) counter(attr string) uint64 {
	n := r.Uint(attr, 1)
	if n > MaxCounter {
		r.Fail(attr, "is %d; it must be at most %d", n, uint64(MaxCounter))
	}
	return n
}

func (r *Reader) bool(attr string) bool {
	b, ok := r.Item[attr].(*types.AttributeValueMemberBOOL)
	if !ok {
		r.Fail(attr, "is %s; it must be a boolean", TypeName(r.Item[attr]))
		return false
	}
	return b.Value
}

// Text undoes TextAttribute.
func (r *Reader) Text(attr string) string {
	switch v := r.Item[attr].(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	default:
		r.Fail(attr, "is %s; it must be a string or binary", TypeName(v))
		return ""
	}
}

// optionalText is text for an attribute that may be absent, which is "".
func (r *Reader) optionalText(attr string) string {
	if _, found := r.Item[attr]; !found {
		return ""
	}
	return r.Text(attr)
}

// TypeName names the type of an attribute for people.
func TypeName(v types.AttributeValue) string {
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

// ItemSize returns how many bytes DynamoDB counts for an item, about: a byte for each
// two significant digits of a number and one more, and one for a sign.
func ItemSize(item map[string]types.AttributeValue) int {
	n := 0
	for name, value := range item {
		n += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberB:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(strings.Trim(v.Value, "-0"))+1)/2 + 1
			if strings.HasPrefix(v.Value, "-") {
				n++
			}
		}
	}
	return n
}

// ItemKey returns the primary key of an item that was read.
func ItemKey(table string, item map[string]types.AttributeValue) (Key, error) {
	r := NewReader(table, Key{}, item)
	k := Key{r.Text(AttrPK), r.Text(AttrSK)}
	if r.Fault != nil {
		return Key{}, r.Fault
	}
	return k, nil
}

// MaxCounter is the greatest value of a counter.
const MaxCounter = 1<<32 - 1
