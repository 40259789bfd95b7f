package rls

import (
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

// Bounds of one call. A gateway's configuration has a handful of each. The bounds keep one call
// from blocking others. A call beyond them is denied, see [MaxMessage].
const (
	MaxDescriptors = 1024   // in a call
	MaxEntries     = 1000   // in a descriptor
	MaxCallEntries = 32_768 // in a call
)

// request is a RateLimitRequest. It is decoded without reflection, and its strings are any bytes,
// not only UTF-8. The next decode reuses its memory.
type request struct {
	in      descriptor.Call
	size    int           // bytes on the wire
	json    bool          // it came as JSON, see JSONOptions
	wire    string        // the message, of which its strings are parts; "" = it was not read
	method  *method       // of Kuadrant's service; nil = ShouldRateLimit
	ttl     time.Duration // of a Reserve; 0 = none
	commits string        // the reservation of a Commit; "" = none
	problem *invalidError // the reason why the request cannot be answered; nil = it can

	entries []descriptor.Entry // the memory of the descriptors' entries
	limits  []descriptor.Limit // the memory of their limits
}

// WireSize returns the number of bytes of the request on the wire.
func (r *request) WireSize() int { return r.size }

// LoggedDomain returns the domain of the request for a log: printable, and cut if it is long.
func (r *request) LoggedDomain() string { return shown(r.in.Domain) }

// Fields of envoy.service.ratelimit.v3.RateLimitRequest and of
// envoy.extensions.common.ratelimit.v3.RateLimitDescriptor: number and wire type.
const (
	requestDomain      = 1<<3 | uint64(protowire.BytesType)
	requestDescriptors = 2<<3 | uint64(protowire.BytesType)
	requestHits        = 3<<3 | uint64(protowire.VarintType)

	descriptorEntries  = 1<<3 | uint64(protowire.BytesType)
	descriptorLimit    = 2<<3 | uint64(protowire.BytesType)
	descriptorHits     = 3<<3 | uint64(protowire.BytesType)
	descriptorNegative = 4<<3 | uint64(protowire.VarintType)

	entryKey   = 1<<3 | uint64(protowire.BytesType)
	entryValue = 2<<3 | uint64(protowire.BytesType)

	overrideRequests   = 1<<3 | uint64(protowire.VarintType)
	overrideUnit       = 2<<3 | uint64(protowire.VarintType)
	overrideMultiplier = 3<<3 | uint64(protowire.BytesType)

	wrapperValue = 1<<3 | uint64(protowire.VarintType) // of UInt32Value and UInt64Value
)

// decode reads a request and notes its problem. It copies data once, and does not keep it.
func (r *request) decode(data []byte) {
	r.begin(len(data))
	if r.problem != nil {
		return
	}
	r.wire = string(data)
	err := r.decodeRequest(message{data, r.wire})
	switch {
	case r.problem != nil && r.problem.denied: // the rest was not read
	case err != nil:
		r.problem = &invalidError{reason: "malformed", text: err.Error()}
	case r.problem != nil: // a problem of a descriptor
	case r.in.Domain == "":
		r.problem = errNoDomain
	case len(r.in.Descriptors) == 0:
		r.problem = errNoDescriptors
	}
}

// begin clears the request before, and notes a problem if the new one has too many bytes.
func (r *request) begin(size int) {
	r.in.Domain, r.in.Hits, r.problem, r.size, r.json = "", 0, nil, size, false
	r.in.Use, r.ttl, r.commits, r.wire = r.method.use(), 0, "", ""
	r.in.Descriptors, r.entries, r.limits = r.in.Descriptors[:0], r.entries[:0], r.limits[:0]
	if size > MaxMessage {
		r.problem = tooLarge(MaxMessage, "bytes")
	}
}

// decodeRequest reads the wire form of a RateLimitRequest, with the semantics of
// protobuf: fields in any order, the last scalar wins, submessages merge, unknown
// fields are skipped.
func (r *request) decodeRequest(m message) error {
	for len(m.raw) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		switch f.tag {
		case requestDomain:
			r.in.Domain = f.body.text
		case requestDescriptors:
			if len(r.in.Descriptors) == MaxDescriptors {
				r.problem = tooLarge(MaxDescriptors, "descriptors")
				return nil
			}
			if err := r.decodeDescriptor(f.body); err != nil {
				return fmt.Errorf("descriptors[%d]: %w", len(r.in.Descriptors), err)
			}
			if r.problem != nil && r.problem.denied {
				return nil
			}
		case requestHits:
			r.in.Hits = uint64(uint32(f.varint)) // #nosec G115 -- a uint32 keeps the low bits, as protobuf says
			if r.in.Use == descriptor.UseReserve {
				r.in.Hits = f.varint
			}
		default:
			if err := r.decodeMore(f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *request) decodeDescriptor(m message) error {
	var d descriptor.Descriptor
	var o override
	first := len(r.entries)
	for len(m.raw) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		switch f.tag {
		case descriptorEntries:
			e, err := decodeEntry(f.body)
			if err != nil {
				return err
			}
			switch {
			case len(r.entries)-first == MaxEntries:
				r.problem = tooLarge(MaxEntries, "entries in a descriptor")
				return nil
			case len(r.entries) == MaxCallEntries:
				r.problem = tooLarge(MaxCallEntries, "entries")
				return nil
			}
			r.entries = append(r.entries, e)
		case descriptorLimit:
			if err := o.decode(f.body); err != nil {
				return err
			}
		case descriptorHits:
			d.HitsSet = true
			if err := decodeWrapper(f.body, &d.Hits); err != nil {
				return err
			}
		case descriptorNegative:
			d.Refund = f.varint != 0
		}
	}
	d.Entries = r.entries[first:len(r.entries):len(r.entries)]
	if o.set {
		d.Limit = r.limitOf(o)
	}
	r.in.Descriptors = append(r.in.Descriptors, d)
	return nil
}

func decodeEntry(m message) (e descriptor.Entry, err error) {
	for len(m.raw) > 0 {
		f, err := m.next()
		if err != nil {
			return e, err
		}
		switch f.tag {
		case entryKey:
			e.Key = f.body.text
		case entryValue:
			e.Value = f.body.text
		}
	}
	return e, nil
}

// decodeWrapper reads a UInt64Value or UInt32Value into v, which keeps its value
// when the message has none.
func decodeWrapper(m message, v *uint64) error {
	for len(m.raw) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		if f.tag == wrapperValue {
			*v = f.varint
		}
	}
	return nil
}

// override is a RateLimitOverride.
type override struct {
	set        bool
	requests   uint32
	unit       int32
	multiplier uint64 // 0 = 1
}

func (o *override) decode(m message) error {
	o.set = true
	for len(m.raw) > 0 {
		f, err := m.next()
		if err != nil {
			return err
		}
		switch f.tag {
		case overrideRequests:
			o.requests = uint32(f.varint) // #nosec G115 -- the low bits, as protobuf says
		case overrideUnit:
			o.unit = int32(f.varint) // #nosec G115 -- the low bits, as protobuf says
		case overrideMultiplier:
			if err := decodeWrapper(f.body, &o.multiplier); err != nil {
				return err
			}
		}
	}
	return nil
}

// limitOf returns the limit of an override. It notes a problem if the unit is unknown.
func (r *request) limitOf(o override) *descriptor.Limit {
	unit := unitSeconds(o.unit)
	if o.unit == unitWeek || unit == 0 { // WEEK is a unit of answers only
		if r.problem == nil {
			r.problem = &invalidError{reason: "unknown_unit", text: fmt.Sprintf(
				"descriptors[%d].limit.unit is %d; it must be SECOND (1), MINUTE (2), HOUR (3), DAY (4), MONTH (5) or YEAR (6)",
				len(r.in.Descriptors), o.unit)}
		}
		return nil
	}
	multiplier := max(1, int64(uint32(o.multiplier))) // #nosec G115 -- a UInt32Value keeps the low bits
	seconds := min(unit*multiplier, math.MaxInt64/int64(time.Second))
	r.limits = append(r.limits, descriptor.Limit{Requests: uint64(o.requests), Period: time.Duration(seconds) * time.Second})
	return &r.limits[len(r.limits)-1] // stays valid when limits grows, as it never changes
}

// message is the unread part of a message, as bytes and as the same text.
type message struct {
	raw  []byte
	text string
}

// field is one field of a message.
type field struct {
	tag    uint64  // number and wire type: a known number with another type is an unknown field
	varint uint64  // of a varint
	body   message // of a length-delimited field
}

// next reads the next field of a message that is not empty.
func (m *message) next() (field, error) {
	num, typ, n := protowire.ConsumeTag(m.raw)
	if n < 0 || num > protowire.MaxValidNumber {
		return field{}, errMalformed
	}
	m.skip(n)
	f := field{tag: protowire.EncodeTag(num, typ)}
	switch typ {
	case protowire.VarintType:
		f.varint, n = protowire.ConsumeVarint(m.raw)
	case protowire.BytesType:
		var body []byte
		body, n = protowire.ConsumeBytes(m.raw)
		if n >= 0 {
			f.body = message{body, m.text[n-len(body) : n]}
		}
	case protowire.Fixed32Type, protowire.Fixed64Type, protowire.StartGroupType, protowire.EndGroupType:
		fallthrough
	default:
		n = protowire.ConsumeFieldValue(num, typ, m.raw)
	}
	if n < 0 {
		return field{}, errMalformed
	}
	m.skip(n)
	return f, nil
}

func (m *message) skip(n int) { m.raw, m.text = m.raw[n:], m.text[n:] }

const (
	// MaxMessage is the largest request that is read, in bytes: 1 MiB. That is far above the
	// headers that a gateway lets through. A larger one is denied under every policy. With an error
	// or a policy, a client could pass by making its headers large.
	MaxMessage = 1 << 20
	// MaxReceived is the largest request that is answered at all, in bytes: 16 MiB. By default
	// Envoy lets through 60 KiB of headers, and never more than 8 MiB. To exceed the bound it would
	// need 2 copies of all headers at that most, or 273 at the default.
	MaxReceived = 16 << 20
)

// maxTTL bounds the ttl of a Reserve.
const maxTTL = 24 * time.Hour

// Fields of Kuadrant's messages beside those of a RateLimitRequest.
const (
	reserveTTL     = 4<<3 | uint64(protowire.BytesType)
	commitID       = 3<<3 | uint64(protowire.BytesType)
	commitAmount   = 4<<3 | uint64(protowire.VarintType)
	reserveCode    = 1
	reserveID      = 2
	commitReleased = 1
)

// decodeMore reads a field that only messages of Kuadrant have.
func (r *request) decodeMore(f field) error {
	switch {
	case r.method == nil:
	case r.in.Use == descriptor.UseReserve && f.tag == reserveTTL:
		var seconds uint64
		err := decodeWrapper(f.body, &seconds)                                        // the seconds of a Duration have the number of a wrapped value
		r.ttl = time.Duration(min(seconds, uint64(maxTTL/time.Second))) * time.Second // #nosec G115 -- it is bounded
		return err
	case r.method.commits && f.tag == commitID:
		r.commits = f.body.text
	case r.method.commits && f.tag == commitAmount:
		r.in.Hits = f.varint
	}
	return nil
}
