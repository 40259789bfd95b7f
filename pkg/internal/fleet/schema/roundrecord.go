package schema

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// roundKey is the key of the record of the last round over the usage of all.
func roundKey() Key { return Key{RegistryNS + "/BUDGETS#", "#ROUND"} }

// ClaimRound returns the write by which one process of all begins a round over the usage of all. It is
// refused where the last one began at a time or later.
func ClaimRound(now, last time.Time) *ItemWrite {
	w := NewUpdate(roundKey())
	w.RequireAbsentOr(AttrCreatedAt, "<", NumberAttribute(last.UnixMilli()))
	w.Set(AttrCreatedAt, NumberAttribute(now.UnixMilli()))
	return w
}

// RoundAt returns when the last round began; zero where the item does not tell.
func RoundAt(table string, item map[string]types.AttributeValue) time.Time {
	r := NewReader(table, roundKey(), item)
	at, ok := r.Optional(AttrCreatedAt, MinTime, MaxTime)
	if !ok || r.Fault != nil {
		return time.Time{}
	}
	return time.UnixMilli(at)
}
