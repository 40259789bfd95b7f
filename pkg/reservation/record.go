package reservation

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A record is the content of an id. Numbers are varints. Repeated names and limits are written
// once, as they are mostly the same on every level:
//
//	record  = expires (signed, ms)  namespace  count holding...
//	holding = namespace entity resource  variant generation shard level  limits  count taken...
//	taken   = which of the limits  amount
//	limits  = i: the i-th set before; or the number of sets before, and a new one: count limit...
//	limit   = name  capacity (0 = unlimited, no more follows)  refill  period (ms)  max debt (signed)
//	string  = 2·i+1: the i-th string before; or 2·length, and a new one
//
// A change of this format is another version of the id.

// MaxHoldings is the greatest number of holdings of a reservation: those of 16
// takes on every level of their chains, and on a bucket of their own.
const MaxHoldings = 16 * (limiter.MaxLevels + 1)

// The fewest bytes of a holding, a taken amount and a limit. With them a false count is detected
// before memory is allocated for it.
const (
	minHolding = 9
	minTaken   = 2
	minLimit   = 2
)

// appendRecord appends the record of r. It fails with [ErrTooLong] and with
// [limiter.ErrInvalid].
func appendRecord(buf []byte, r *Reservation) ([]byte, error) {
	if len(r.Holdings) > MaxHoldings {
		return nil, fmt.Errorf("%w: it has %d holdings; at most %d are legal", ErrTooLong, len(r.Holdings), MaxHoldings)
	}
	start := len(buf)
	e := encoder{buf: binary.AppendVarint(buf, r.Expires.UnixMilli())}
	e.string(r.Namespace)
	e.count(len(r.Holdings))
	for i := range r.Holdings {
		e.holding(&r.Holdings[i])
		if e.err != nil {
			return nil, fmt.Errorf("holding %d of a reservation: %w", i, e.err)
		}
	}
	if len(e.buf)-start > maxRecord {
		return nil, fmt.Errorf("%w: it would have more than %d characters; use shorter names or fewer limits", ErrTooLong, MaxLength)
	}
	return e.buf, nil
}

type encoder struct {
	buf     []byte
	strings []string
	sets    []*limiter.Limits
	err     error // the first
}

func (e *encoder) uint(n uint64) { e.buf = binary.AppendUvarint(e.buf, n) }

// number writes a number that is 0 to most.
func (e *encoder) number(what string, n, most int64) {
	if n < 0 || n > most {
		e.fail("its %s is %d; it must be 0 to %d", what, n, most)
		return
	}
	e.uint(uint64(n))
}

// count writes a length or an index.
func (e *encoder) count(n int) { e.number("length", int64(n), math.MaxInt64) }

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("%w: "+format, append([]any{limiter.ErrInvalid}, args...)...)
	}
}

func (e *encoder) string(s string) {
	if i := slices.Index(e.strings, s); i >= 0 {
		e.count(2*i + 1)
		return
	}
	e.strings = append(e.strings, s)
	e.count(2 * len(s))
	e.buf = append(e.buf, s[:min(len(s), maxRecord+1)]...) // one that is longer is refused anyway
}

// windowed is added to the level of a bucket of a window.
const windowed = limiter.MaxLevels

func (e *encoder) holding(h *limiter.Holding) {
	e.string(h.Bucket.Namespace)
	e.string(h.Bucket.Entity)
	e.string(h.Bucket.Resource)
	e.uint(h.Bucket.Variant)
	e.uint(h.Generation)
	e.number("shard", int64(h.Shard), math.MaxInt32)
	level := int64(h.Level)
	if h.Bucket.Window != (limiter.Window{}) {
		level += windowed
	}
	e.number("level", int64(h.Level), windowed-1)
	e.buf[len(e.buf)-1] = byte(level) // #nosec G115 -- below 16, or refused
	if level >= windowed {
		e.uint(uint64(h.Bucket.Window.Start)) // #nosec G115 -- read as it is written
		e.uint(uint64(h.Bucket.Window.End))   // #nosec G115 -- likewise
		e.uint(h.Bucket.Window.Calendar)
	}
	e.limits(h.Limits)
	e.count(len(h.Taken))
	for _, c := range h.Taken {
		which := h.Limits.Find(c.Limit)
		if which < 0 {
			e.fail("it took of limit %q, which its limits lack", c.Limit)
			return
		}
		e.count(which)
		e.number("amount", c.Amount, tokenbucket.MaxAmount)
	}
}

func (e *encoder) limits(s *limiter.Limits) {
	i := slices.IndexFunc(e.sets, func(before *limiter.Limits) bool { return same(before, s) })
	if i >= 0 {
		e.count(i)
		return
	}
	e.count(len(e.sets))
	e.sets = append(e.sets, s)
	if s.Len() == 0 {
		e.fail("it has no limits")
	}
	e.count(s.Len())
	for i := range s.Len() {
		l := s.At(i)
		e.string(l.Name)
		e.number("capacity", l.Capacity, limiter.MaxTokens)
		e.number("refill", l.RefillAmount, limiter.MaxTokens)
		e.number("period", l.RefillPeriod.Milliseconds(), tokenbucket.MaxPeriod) // 0 of an unlimited limit
		if l.Unlimited {
			continue
		}
		e.buf = binary.AppendVarint(e.buf, l.MaxDebt)
	}
}

// same reports whether two sets hold the same limits. Their hashes alone do not distinguish an
// unset max debt from the same number given.
func same(a, b *limiter.Limits) bool {
	if a == b {
		return true
	}
	if a.Len() != b.Len() || a.Hash() != b.Hash() {
		return false
	}
	for i := range a.Len() {
		if a.At(i) != b.At(i) { // rule: limits that differ in max debt are two
			return false
		}
	}
	return true
}

// parseRecord returns the reservation of a record, without its ID. For any other bytes it fails
// with [ErrMalformed]. It allocates memory only in proportion to their number.
func parseRecord(record []byte) (Reservation, error) {
	d := decoder{record: string(record), rest: record}
	r := Reservation{Expires: time.UnixMilli(d.signed()).UTC(), Namespace: d.string()}
	if n := d.count("the number of holdings", MaxHoldings, minHolding); n > 0 {
		r.Holdings = make([]limiter.Holding, n)
	}
	for i := range r.Holdings {
		if d.err != nil {
			break
		}
		d.holding(&r.Holdings[i])
	}
	if len(d.rest) > 0 {
		d.fail("%d bytes are left over", len(d.rest))
	}
	if d.err != nil {
		return Reservation{}, d.err
	}
	return r, nil
}

type decoder struct {
	record  string // all of it; strings are slices of it
	rest    []byte // its end, not yet read
	strings []string
	sets    []*limiter.Limits
	err     error // the first; from then on all results are zero
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: its record is wrong: "+format, append([]any{ErrMalformed}, args...)...)
	}
	d.rest = nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail("a number does not end, or is too great")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail("a number does not end, or is too great")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// number reads a number that is 0 to most.
func (d *decoder) number(what string, most int64) int64 {
	n := d.uint()
	if n > uint64(most) { //nolint:gosec // most is never negative
		d.fail("%s is %d; it must be 0 to %d", what, n, most)
		return 0
	}
	return int64(n) //nolint:gosec // at most most
}

// count reads the number of items that follow, each of at least size bytes.
func (d *decoder) count(what string, most, size int) int {
	n := int(d.number(what, int64(most)))
	if n > len(d.rest)/size {
		d.fail("%s is %d, which %d bytes cannot hold", what, n, len(d.rest))
		return 0
	}
	return n
}

func (d *decoder) string() string {
	n := int(d.number("a string", math.MaxInt32))
	if n&1 == 1 {
		n >>= 1
		if n < len(d.strings) {
			return d.strings[n]
		}
		d.fail("string %d is not there", n)
		return ""
	}
	n >>= 1
	if n > len(d.rest) {
		d.fail("a string of %d bytes does not end", n)
		return ""
	}
	s := d.record[len(d.record)-len(d.rest):][:n]
	d.rest = d.rest[n:]
	d.strings = append(d.strings, s)
	return s
}

func (d *decoder) holding(h *limiter.Holding) {
	h.Bucket.Namespace = d.string()
	h.Bucket.Entity = d.string()
	h.Bucket.Resource = d.string()
	h.Bucket.Variant = d.uint()
	h.Generation = d.uint()
	h.Shard = int(d.number("a shard", math.MaxInt32))
	level := d.number("a level", 2*windowed-1)
	h.Level = int(level % windowed)
	if level >= windowed {
		h.Bucket.Window.Start, h.Bucket.Window.End, h.Bucket.Window.Calendar = int64(d.uint()), int64(d.uint()), d.uint() // #nosec G115 -- read as they are written
	}
	h.Limits = d.limits()
	if n := d.count("the number of taken amounts", maxRecord, minTaken); n > 0 {
		h.Taken = make([]limiter.Consumption, n)
	}
	for i := range h.Taken {
		which := int(d.number("a taken limit", limiter.MaxLimits-1))
		if which >= h.Limits.Len() { // rule: an amount of a limit that the set lacks is refused
			d.fail("limit %d of %d is not there", which, h.Limits.Len())
			return
		}
		h.Taken[i] = limiter.Consumption{
			Limit:  h.Limits.At(which).Name,
			Amount: d.number("an amount", tokenbucket.MaxAmount),
		}
	}
}

func (d *decoder) limits() *limiter.Limits {
	if i := int(d.number("a set of limits", int64(len(d.sets)))); i < len(d.sets) {
		return d.sets[i]
	}
	list := make([]limiter.Limit, d.count("the number of limits", limiter.MaxLimits, minLimit))
	for i := range list {
		list[i] = d.limit()
	}
	if len(list) == 0 {
		d.fail("a set of limits is empty")
	}
	if d.err != nil {
		return nil
	}
	s, err := limiter.NewLimits(list...)
	if err != nil {
		d.fail("%v", err)
		return nil
	}
	d.sets = append(d.sets, s)
	return s
}

func (d *decoder) limit() limiter.Limit {
	l := limiter.Limit{Name: d.string(), Capacity: d.number("a capacity", limiter.MaxTokens)}
	l.RefillAmount = d.number("a refill", limiter.MaxTokens)
	l.RefillPeriod = time.Duration(d.number("a period", tokenbucket.MaxPeriod)) * time.Millisecond
	if l.Unlimited = l.RefillPeriod == 0; l.Unlimited {
		return l
	}
	l.MaxDebt = d.signed()
	return l
}
