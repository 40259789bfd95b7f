package tokenbucket_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// FuzzBucket reads a script of operations from bytes and runs it on a bucket and on its model.
// Numbers out of range are mapped into it, so that no input is wasted.
func FuzzBucket(f *testing.F) {
	f.Add(int64(100_000), int64(100_000), int64(60_000), []byte{})
	f.Add(int64(3000), int64(3000), int64(7000), script(
		op{kind: opTryConsume, amount: 3000}, op{kind: opRefill, delta: 1}, op{kind: opTryConsume, delta: 2, amount: 1}))
	f.Add(int64(tokenbucket.MaxCapacity), int64(tokenbucket.MaxCapacity), int64(tokenbucket.MaxPeriod), script(
		op{kind: opCharge, amount: tokenbucket.MaxAmount}, op{kind: opRefill, delta: tokenbucket.MaxPeriod},
		op{kind: opRefund, delta: -1000, amount: 5}, op{kind: opCharge, amount: tokenbucket.MaxAmount}))
	f.Add(int64(1000), int64(1000), int64(86_400_000), script(
		op{kind: opTryConsume, amount: 1000}, op{kind: opRefill, delta: 86_399},
		op{kind: opReparameterize, to: rate(100, 1, second)}, op{kind: opTryConsume, amount: 1}))
	// Three millitokens a second, and a debt that takes 2^64 − 2/3 milliseconds.
	f.Add(int64(tokenbucket.MaxCapacity), int64(3), int64(1000), script(
		op{kind: opCharge, amount: tokenbucket.MaxCapacity + 55_340_232_221_128_656}, op{kind: opTryConsume, delta: 718, amount: 1}))

	// An extra, of which a part is taken and given back, and which outlives other parameters.
	f.Add(int64(5000), int64(5000), int64(60_000), script(
		op{kind: opTryConsume, amount: 3000}, op{kind: opTopUp, delta: 1, amount: 25_000}, op{kind: opTryConsume, delta: 60_000, amount: 20_000},
		op{kind: opRefund, delta: 1, amount: 7000}, op{kind: opReparameterize, to: rate(10, 1, second)}, op{kind: opCharge, delta: 1, amount: 19_000}))

	f.Fuzz(func(t *testing.T, capacity, amount, period int64, script []byte) {
		m := newMachine(paramsIn(capacity, amount, period), start)
		for range 100 {
			o, rest, ok := next(script)
			if !ok {
				return
			}
			m.step(t, o)
			script = rest
		}
	})
}

// An operation in a script is its kind, and five numbers of 64 bits.
const opBytes = 1 + 5*8

func script(ops ...op) []byte {
	var s []byte
	for _, o := range ops {
		s = append(s, byte(o.kind))
		for _, n := range []int64{o.delta, o.amount, o.to.Capacity, o.to.Amount, o.to.Period} {
			s = binary.BigEndian.AppendUint64(s, uint64(n))
		}
	}
	return s
}

func next(s []byte) (o op, rest []byte, ok bool) {
	if len(s) < opBytes {
		return op{}, nil, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(s[1+8*i:])) }
	return op{
		kind:   opKinds[int(s[0])%len(opKinds)],
		delta:  number(0) % (10 * tokenbucket.MaxPeriod),
		amount: within(number(1), 0, tokenbucket.MaxAmount),
		to:     paramsIn(number(2), number(3), number(4)),
	}, s[opBytes:], true
}

func paramsIn(capacity, amount, period int64) tokenbucket.Params {
	return tokenbucket.Params{
		Capacity: within(capacity, 1, tokenbucket.MaxCapacity),
		Amount:   within(amount, 1, tokenbucket.MaxCapacity),
		Period:   within(period, tokenbucket.MinPeriod, tokenbucket.MaxPeriod),
	}
}

// within returns a number in range unchanged, and maps any other into it.
func within(n, least, most int64) int64 {
	if least <= n && n <= most {
		return n
	}
	return least + (n&math.MaxInt64)%(most-least+1)
}
