package embedded

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unique"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A bucket in the file:
//
//	key    namespace, entity, resource, each with its length before it; variant, 8 bytes;
//	       flags; begin, end and calendar of a window, 8 bytes each, or nothing
//	value  version; generation; hour, and its events; limits; of each that is not unlimited
//	       its balance, the size of its block and its usage of the hour; dormant limits and
//	       balances; the time and the use of the forgotten limits
//
// Numbers are varints, except the variant.
const bucketVersion = 1

func appendBalance(buf []byte, t tokenbucket.Bucket) []byte {
	for _, n := range []int64{t.Tokens, t.Remainder, t.Refilled, t.Carried} {
		buf = binary.AppendVarint(buf, n)
	}
	return buf
}

// record appends the record of the bucket: its state, and the sizes of its blocks. exact leaves the
// blocks out.
func (b *bucket) record(buf []byte, exact bool) []byte {
	const usual = 128 // bytes of a record, for two limits
	buf = append(slices.Grow(buf, usual), bucketVersion)
	buf = binary.AppendUvarint(buf, b.generation)
	var hour, events int64
	if b.block != nil {
		hour, events = b.block.hour, b.block.events
	}
	buf = binary.AppendVarint(binary.AppendVarint(buf, hour), events)
	buf = appendLimits(buf, b.limits)
	for i := range b.limits.Len() {
		if b.limits.Unlimited(i) {
			continue
		}
		var size, used int64
		if b.block != nil {
			used = b.block.span(i).used
			if !exact {
				size = b.block.span(i).nextSize
			}
		}
		buf = appendBalance(buf, *b.balance(i))
		buf = binary.AppendVarint(buf, size)
		buf = binary.AppendVarint(buf, used)
	}
	var sleeping []dormant
	var f forgotten
	if b.rest != nil {
		sleeping, f = b.rest.dormant, b.rest.forgotten
	}
	buf = binary.AppendUvarint(buf, uint64(len(sleeping)))
	for _, d := range sleeping {
		buf = appendBalance(appendLimit(buf, d.limit), d.bucket)
	}
	return binary.AppendVarint(binary.AppendVarint(buf, f.until), f.use)
}

// readBalance reads a balance.
func readBalance(r *recordReader) tokenbucket.Bucket {
	return tokenbucket.Bucket{
		Tokens:    r.Int(-tokenbucket.MaxAmount, tokenbucket.MaxAmount),
		Remainder: r.Int(0, tokenbucket.MaxPeriod),
		Refilled:  r.Int(math.MinInt64, math.MaxInt64),
		Carried:   r.Int(-tokenbucket.MaxAmount, tokenbucket.MaxCapacity),
	}
}

// restored is a bucket as read from the file.
type restored struct {
	*bucket

	sizes []int64 // of the blocks, by limit
}

// parseBucket reads a bucket. Its state is that of the time when it was written.
func parseBucket(key, value []byte, shared map[string]*limiter.Limits) (restored, error) {
	identity, value, ok := identityOf(key, value)
	r := &recordReader{Rest: identity, Failed: !ok}
	b := &bucket{namespace: unique.Make(r.Text()), entity: r.Text(), resource: unique.Make(r.Text())}
	if r.Failed || !b.readTail(r.Rest) {
		return restored{}, fmt.Errorf("key %x: %w", key, errFormat)
	}
	r = &recordReader{Rest: value}
	r.version(bucketVersion)
	b.generation = r.Uint()
	hour, events := r.Int(hourOf(math.MinInt64), hourOf(math.MaxInt64)), r.Int(0, math.MaxInt64)
	b.limits = r.Limits(shared)
	if r.Failed {
		return restored{}, fmt.Errorf("bucket of %q: %w", b.entity, errFormat)
	}
	out := restored{bucket: b, sizes: make([]int64, b.limits.Len())}
	k := newBlock(b.limits, 0)
	k.hour, k.events, k.stored, k.clean = hour, events, true, true
	if events > 0 {
		b.block = k
	}
	b.makeBalances()
	for i := range b.limits.Len() {
		if b.limits.Unlimited(i) {
			continue
		}
		*b.balance(i) = readBalance(r)
		out.sizes[i] = r.Int(0, maxFlow)
		k.span(i).used = r.Int(math.MinInt64, math.MaxInt64)
		if out.sizes[i] > 0 || k.span(i).used != 0 {
			k.clean, b.block = out.sizes[i] == 0 && k.clean, k
		}
	}
	for range r.Count() {
		b.more().dormant = append(b.more().dormant, dormant{limit: r.Limit(), bucket: readBalance(r)})
	}
	f := forgotten{until: r.Int(math.MinInt64, math.MaxInt64), use: r.Int(0, math.MaxInt64)}
	if f != (forgotten{}) {
		b.more().forgotten = f
	}
	if r.Failed || len(r.Rest) > 0 {
		return restored{}, fmt.Errorf("bucket of %q: %w", b.entity, errFormat)
	}
	return out, nil
}

// readTail reads the part of a key that follows the names.
func (b *bucket) readTail(tail []byte) bool {
	if len(tail) < 8+1 {
		return false
	}
	b.variant = binary.BigEndian.Uint64(tail)
	flags, tail := tail[8], tail[8+1:]
	b.shared = flags&sharedKey != 0
	if flags&windowedKey != 0 && len(tail) == windowSize {
		w := limiter.Window{Start: int64(binary.BigEndian.Uint64(tail)), End: int64(binary.BigEndian.Uint64(tail[8:])), Calendar: binary.BigEndian.Uint64(tail[16:])} // #nosec G115 -- read as they are written
		b.window = newWindow(w)
		return w != limiter.Window{}
	}
	return len(tail) == 0 && flags&^sharedKey == 0
}

// recover computes the balances of a bucket from its record: refill first, and then minus the
// blocks, whose tokens may have been taken. It returns the sum of the blocks in millitokens, the
// most that the bucket loses. A clock that is behind that of the last run refills nothing. Refill
// then follows the new clock.
func (r *restored) recover(now int64) (lost int64) {
	for i, size := range r.sizes {
		if r.limits.Unlimited(i) {
			continue
		}
		t := r.balance(i)
		carries := t.Carried > 0
		*t = refillAt(*t, r.limits.Params(i), now) // rule: recovery refills before it subtracts
		subtractBlock(t, r.limits.At(i), size, carries)
		lost = limiter.SaturatingSum(lost, size)
	}
	if r.rest != nil {
		for i := range r.rest.dormant {
			d := &r.rest.dormant[i]
			d.bucket = refillAt(d.bucket, d.limit.Params(), now)
		}
	}
	return lost
}

// subtractBlock subtracts a block, down to the debt floor. The rest of the block is added to the
// use that the balance carries, if it carries any: the true use may be that much more.
func subtractBlock(t *tokenbucket.Bucket, l limiter.Limit, size int64, carries bool) {
	switch floor := l.DebtFloor(); {
	case t.Tokens-size >= floor:
		*t = t.Subtract(l.Params(), size)
		return
	case t.Tokens > floor: // the true balance may have been full in between, with another remainder since
		size -= t.Tokens - floor
		t.Tokens, t.Remainder = floor, 0
	}
	if carries { // rule: a block of a limit with carried use is subtracted
		t.Carried = min(t.Carried+size, tokenbucket.MaxCapacity)
	}
}

// refillAt refills a balance to now, or sets its time back to now.
func refillAt(t tokenbucket.Bucket, p tokenbucket.Params, now int64) tokenbucket.Bucket {
	if t.Refilled > now {
		t.Refilled, t.Remainder = now, 0 // rule: a clock that is behind refills nothing
		return t
	}
	return t.Refill(p, now)
}
