package schema

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// bigOf returns the number of an amount.
func bigOf(n Units) *big.Int {
	b := big.NewInt(n.hi)
	return b.Add(b.Lsh(b, 64), new(big.Int).SetUint64(n.lo))
}

// within returns a number, or the end of the range beyond.
func within(b, least, most *big.Int) *big.Int {
	switch {
	case b.Cmp(least) < 0:
		return least
	case b.Cmp(most) > 0:
		return most
	}
	return b
}

// anyUnits draws an amount: any, a small one, or one beside a place where a carry or an end is.
func anyUnits(t *rapid.T, what string) Units {
	n := Units{
		rapid.OneOf(rapid.SampledFrom([]int64{0, -1, 1, math.MinInt64, math.MaxInt64}), rapid.Int64()).Draw(t, what),
		rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, math.MaxUint64, math.MaxInt64, 1 << 63, 1e19 - 1, 1e19, 1e18}), rapid.Uint64()).Draw(t, what),
	}
	if rapid.Bool().Draw(t, "is a product") {
		return Product(n.hi, int64(n.lo)) // #nosec G115 -- any
	}
	return n
}

// TestUnits compares sums, differences, orders and quotients with those of math/big.
func TestUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, m := anyUnits(t, "n"), anyUnits(t, "m")
		x, y := bigOf(n), bigOf(m)
		for what, tt := range map[string]struct {
			got  Units
			want *big.Int
		}{
			"sum":        {n.Add(m), new(big.Int).Add(x, y)},
			"difference": {n.Sub(m), new(big.Int).Sub(x, y)},
			"product":    {Product(n.hi, m.hi), new(big.Int).Mul(big.NewInt(n.hi), big.NewInt(m.hi))},
			"number":     {UnitsOf(n.hi), big.NewInt(n.hi)},
		} {
			if got, want := bigOf(tt.got), within(tt.want, bigOf(Units{hi: math.MinInt64}), bigOf(Units{math.MaxInt64, math.MaxUint64})); got.Cmp(want) != 0 {
				t.Errorf("the %s of %v and %v is %v, want %v", what, x, y, got, want)
			}
		}
		if n.Cmp(m) != x.Cmp(y) || n.Sign() != x.Sign() || (n == m) != (x.Cmp(y) == 0) {
			t.Errorf("%v compares to %v as %d, and has the sign %d", x, y, n.Cmp(m), n.Sign())
		}
		d := rapid.OneOf(rapid.SampledFrom([]int64{1, 2, math.MaxInt64}), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "d")
		q, rest := n.DivMod(d)
		quotient, modulus := new(big.Int).DivMod(x, big.NewInt(d), new(big.Int))
		quotient = within(quotient, big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64))
		if !quotient.IsInt64() || q != quotient.Int64() || rest != modulus.Int64() {
			t.Errorf("%v / %d is %d, rest %d; want %v, rest %v", x, d, q, rest, quotient, modulus)
		}
	})
}

// TestDigitsOfUnits: digits are those of math/big. Up to 38 of them are read.
func TestDigitsOfUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyUnits(t, "n")
		text := n.String()
		if want := bigOf(n).String(); text != want {
			t.Errorf("the digits are %s, want %s", text, want)
		}
		read, ok := ParseUnits(text)
		if short := len(strings.TrimPrefix(text, "-")) <= 38; ok != short || ok && read != n {
			t.Errorf("%s is read as %v, %t", text, read, ok)
		}
	})
}

// FuzzParseUnits: each text of a minus or not and 1 to 38 digits is read as its number, and no other.
func FuzzParseUnits(f *testing.F) {
	for _, text := range []string{
		"", "-", "0", "-0", "007", "+1", "--1", "1-", "1_0", " 1", "1.0", "1e3", "0x1", "9223372036854775808", "-18446744073709551616",
		strings.Repeat("9", 38), "-" + strings.Repeat("9", 38), strings.Repeat("0", 38), strings.Repeat("0", 39), "1" + strings.Repeat("0", 38),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		digits := strings.TrimPrefix(text, "-")
		want, whole := new(big.Int).SetString(text, 10)
		whole = whole && len(digits) <= 38 && strings.Trim(digits, "0123456789") == ""
		if got, ok := ParseUnits(text); ok != whole || ok && bigOf(got).Cmp(want) != 0 {
			t.Errorf("%q is read as %v, %t; want %v, %t", text, got, ok, want, whole)
		}
	})
}

// TestUnitsHoldEverySum: 38 digits, two points of Amount·K and a thousand amounts are in the range. The points
// are exact.
func TestUnitsHoldEverySum(t *testing.T) {
	fullAt, _ := new(big.Int).SetString(strings.Repeat("9", 38), 10)
	amount := new(big.Int).Mul(big.NewInt(tokenbucket.MaxAmount), big.NewInt(MaxShards*tokenbucket.MaxPeriod*Parts))
	sum := new(big.Int).Add(fullAt, new(big.Int).Mul(amount, big.NewInt(1000)))
	for _, end := range []int64{MinTime, MaxTime} {
		line := Line{Rate: Parts, Room: Parts, Offset: end}
		b := Balance{Share: tokenbucket.Params{Amount: tokenbucket.MaxCapacity}}
		want := new(big.Int).Mul(big.NewInt(Parts), big.NewInt(end))
		want.Mul(want.Add(want, big.NewInt(end)), big.NewInt(tokenbucket.MaxCapacity))
		if got := bigOf(b.Refilled(line, end)); got.Cmp(want) != 0 {
			t.Errorf("Amount·K(%d) is %v, want %v", end, got, want)
		}
		sum.Add(sum, want.Abs(want))
	}
	if most := bigOf(Units{math.MaxInt64, math.MaxUint64}); sum.Cmp(most) > 0 {
		t.Errorf("the greatest sum is %v, the range ends at %v", sum, most)
	}
}
