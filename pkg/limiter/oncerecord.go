package limiter

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// FirstAdjustment is an adjustment that was made under a Once, as recorded by the store.
type FirstAdjustment struct {
	Kind      AdjustKind
	Limit     string // "" = every limit
	Tokens    int64  // requested millitokens
	Elsewhere bool   // it was made for another entity or another resource
	Booked    []Booking
}

// onceRecord is the form of a record of an adjustment.
type onceRecord struct {
	Bucket string     `json:"bucket"` // of bucketSum
	Kind   AdjustKind `json:"kind"`
	Limit  string     `json:"limit,omitempty"`
	Tokens int64      `json:"tokens,omitempty"`
	Booked []Booking  `json:"booked"`
}

// OnceRecord returns the record of an adjustment that a store keeps with its Once, as text. It has
// at most some kilobytes, for any names of the bucket.
func (a *Adjustment) OnceRecord(booked []Booking) string {
	text, err := json.Marshal(onceRecord{a.bucketSum(), a.Kind, a.Limit, a.Tokens, booked})
	if err != nil {
		return "" // impossible: all its values can be encoded
	}
	return string(text)
}

// FirstOf reads the record of the adjustment that this one repeats; nil for any other text.
func (a *Adjustment) FirstOf(text string) *FirstAdjustment {
	var r onceRecord
	if json.Unmarshal([]byte(text), &r) != nil || r.Bucket == "" || r.Kind > AdjustTakeOut {
		return nil
	}
	return &FirstAdjustment{r.Kind, r.Limit, r.Tokens, r.Bucket != a.bucketSum(), r.Booked}
}

// bucketSum identifies the entity and the resource in a namespace.
func (a *Adjustment) bucketSum() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", a.Bucket.Entity, a.Bucket.Resource))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
