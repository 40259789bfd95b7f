package schema

import (
	"cmp"
	"math"
	"math/bits"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Units is an amount of tokens, or a point of Amount·K, in the units of a limit, see [Bucket]. It
// is a whole number from -2^127 to 2^127-1, which is about 1.7·10^38. The zero value is 0.
//
// A sum beyond the range stays at its end. The terms of a sum are:
//
//	Amount·K(t)            below 9.3·10^36   tokenbucket.MaxCapacity·(Parts+1)·2^63
//	an amount of tokens    below 1.1·10^33   tokenbucket.MaxAmount·Parts·MaxShards·tokenbucket.MaxPeriod
//	FullAt of an item      below 10^38       38 digits
//
// The FullAt of a sound item is a point of Amount·K and amounts of tokens. Its sums stay in the range.
// A corrupt item may have any 38 digits. One such number, two points and a thousand amounts are in the
// range too. The end of the range means the same as a number beyond it: the limit is full, or its
// balance is the least one.
type Units struct {
	hi int64
	lo uint64
}

// maxDigits is the greatest number of digits of a number of DynamoDB.
const maxDigits = 38

// UnitsOf returns n units.
func UnitsOf(n int64) Units {
	return Units{n >> 63, uint64(n)} // #nosec G115 -- the lower half of two's complement
}

// Product returns a·b units, which is always in the range.
func Product(a, b int64) Units {
	hi, lo := bits.Mul64(uint64(a), uint64(b))      // #nosec G115 -- below 0 the factor is 2^64 too great
	return Units{int64(hi) - a>>63&b - b>>63&a, lo} // #nosec G115 -- the upper half of two's complement
}

// Add returns n + m.
func (n Units) Add(m Units) Units {
	lo, carry := bits.Add64(n.lo, m.lo, 0)
	sum := Units{n.hi + m.hi + int64(carry), lo} // #nosec G115 -- 0 or 1
	if (n.hi^sum.hi)&(m.hi^sum.hi) < 0 {
		return n.end()
	}
	return sum
}

// Sub returns n - m.
func (n Units) Sub(m Units) Units {
	lo, borrow := bits.Sub64(n.lo, m.lo, 0)
	rest := Units{n.hi - m.hi - int64(borrow), lo} // #nosec G115 -- 0 or 1
	if (n.hi^m.hi)&(n.hi^rest.hi) < 0 {
		return n.end()
	}
	return rest
}

// end returns the end of the range on the side of n.
func (n Units) end() Units {
	if n.hi < 0 {
		return Units{hi: math.MinInt64}
	}
	return Units{math.MaxInt64, math.MaxUint64}
}

// Cmp returns -1 if n < m, 0 if n == m, and 1 if n > m.
func (n Units) Cmp(m Units) int {
	if n.hi != m.hi {
		return cmp.Compare(n.hi, m.hi)
	}
	return cmp.Compare(n.lo, m.lo)
}

// Sign returns -1 below 0, 0 at 0, and 1 above.
func (n Units) Sign() int { return n.Cmp(Units{}) }

// DivMod returns the quotient n/d, rounded down, and the rest: n = q·d + m, with 0 ≤ m < d. d is above 0.
// A quotient beyond the range of an int64 stays at its end.
func (n Units) DivMod(d int64) (q, m int64) {
	hi, lo, by := uint64(n.hi), n.lo, uint64(d) // #nosec G115 -- the upper half of two's complement, and d
	if n.hi < 0 {
		hi, lo = ^hi, ^lo // -1-n: it has the quotient -1-q, and the rest d-1-m
	}
	whole, rest := bits.Div64(hi%by, lo, by)
	q, m = math.MaxInt64, int64(rest) // #nosec G115 -- below d
	if hi < by && whole <= math.MaxInt64 {
		q = int64(whole)
	}
	if n.hi < 0 {
		return -1 - q, d - 1 - m
	}
	return q, m
}

// String returns the decimal digits, behind a minus below 0.
func (n Units) String() string {
	hi, lo, text := uint64(n.hi), n.lo, make([]byte, 0, len("-")+maxDigits+1) // #nosec G115 -- the upper half of two's complement
	if n.hi < 0 {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
		text = append(text, '-')
	}
	const half = 1e19 // above 2^63, so that both halves have at most 64 bits
	upper, lower := bits.Div64(hi, lo, half)
	if upper == 0 {
		return string(strconv.AppendUint(text, lower, 10))
	}
	text = strconv.AppendUint(text, upper, 10)
	for d := uint64(half / 10); d > max(lower, 1); d /= 10 {
		text = append(text, '0')
	}
	return string(strconv.AppendUint(text, lower, 10))
}

// Attribute returns the number as an attribute.
func (n Units) Attribute() types.AttributeValue {
	return &types.AttributeValueMemberN{Value: n.String()}
}

// ParseUnits reads a number of 1 to 38 decimal digits, behind a minus or not. It reports whether
// the text is one.
func ParseUnits(text string) (Units, bool) {
	digits := text
	if digits != "" && digits[0] == '-' {
		digits = digits[1:]
	}
	if digits == "" || len(digits) > maxDigits {
		return Units{}, false
	}
	var hi, lo uint64
	for i := range len(digits) {
		digit := digits[i] - '0'
		if digit > 9 {
			return Units{}, false
		}
		over, tens := bits.Mul64(lo, 10)
		var carry uint64
		lo, carry = bits.Add64(tens, uint64(digit), 0)
		hi = 10*hi + over + carry
	}
	n := Units{int64(hi), lo} // #nosec G115 -- 38 digits have at most 127 bits
	if digits != text {
		return Units{}.Sub(n), true
	}
	return n, true
}
