package rls

import (
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// begin appends the head of a length-delimited field. After its content, call end with the mark
// that begin returned.
func begin(b []byte, num protowire.Number) ([]byte, int) {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	b = append(b, 0) // the length, if it fits in a byte
	return b, len(b)
}

// end writes the length of everything appended since begin.
func end(b []byte, mark int) []byte {
	n := len(b) - mark
	if n < 0x80 {
		b[mark-1] = byte(n) // #nosec G115 -- below 0x80
		return b
	}
	var length [10]byte
	head := protowire.AppendVarint(length[:0], uint64(n))
	return slices.Replace(b, mark-1, mark, head...)
}

// appendUint appends a varint field, and nothing for 0, as proto3 does.
func appendUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// appendString appends a string field; v must be UTF-8.
func appendString(b []byte, num protowire.Number, v string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, v)
}

// The fields of google.protobuf.Struct, Value and ListValue.
const (
	structFields = 1
	mapKey       = 1
	mapValue     = 2
	valueNumber  = 2
	valueString  = 3
	valueBool    = 4
	valueStruct  = 5
	valueList    = 6
	listValues   = 1
)

// beginField begins one field of a Struct; its Value follows, then end.
func beginField(b []byte, name string) (_ []byte, field, value int) {
	b, field = begin(b, structFields)
	b = appendString(b, mapKey, name)
	b, value = begin(b, mapValue)
	return b, field, value
}

func appendNumber(b []byte, name string, v int64) []byte {
	b, field, value := beginField(b, name)
	b = protowire.AppendTag(b, valueNumber, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(float64(v)))
	return end(end(b, value), field)
}

func appendBool(b []byte, name string, v bool) []byte {
	b, field, value := beginField(b, name)
	b = protowire.AppendTag(b, valueBool, protowire.VarintType)
	b = protowire.AppendVarint(b, protowire.EncodeBool(v))
	return end(end(b, value), field)
}

// appendText appends a string to a Struct. It escapes text, which may be any bytes.
func appendText(b []byte, name, text string) []byte {
	b, field, value := beginField(b, name)
	b, mark := begin(b, valueString)
	b = appendEscaped(b, text)
	return end(end(end(b, mark), value), field)
}

// Codes of RateLimitResponse. Zero is UNKNOWN, which Envoy reads as OK, and is never sent.
const (
	codeOK        = 1
	codeOverLimit = 2
)

// Fields of envoy.service.ratelimit.v3.RateLimitResponse and its parts.
const (
	responseCode     = 1
	responseStatuses = 2
	responseHeaders  = 3
	responseBody     = 5
	responseMetadata = 6

	statusCode      = 1
	statusLimit     = 2
	statusRemaining = 3
	statusReset     = 4

	limitRequests   = 1
	limitUnit       = 2
	limitName       = 3
	limitMultiplier = 4

	durationSeconds = 1

	headerKey   = 1
	headerValue = 2
)

func overallCode(denied bool) uint64 {
	if denied {
		return codeOverLimit
	}
	return codeOK
}
