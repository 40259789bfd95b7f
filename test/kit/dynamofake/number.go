package dynamofake

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits of a number: significant digits, and exponents of its first digit.
const (
	maxDigits      = 38
	maxMagnitude   = 125
	minMagnitude   = -130
	maxShortDigits = 18 // any two such integers can be added in an int64
)

// number is coef × 10^exp; coef has no trailing zeros, and zero is 0 × 10^0.
type number struct {
	coef *big.Int
	exp  int
}

// parseNumber reads a number as the wire may hold it: digits with a sign, a point, an
// exponent.
func parseNumber(s string) (number, error) {
	mantissa, exponent := strings.TrimSpace(s), 0
	if i := strings.IndexAny(mantissa, "eE"); i >= 0 {
		e, err := strconv.Atoi(mantissa[i+1:])
		if err != nil {
			return number{}, notANumber(s)
		}
		mantissa, exponent = mantissa[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimPrefix(strings.TrimPrefix(whole, "-"), "+") + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(whole)-len(strings.TrimLeft(whole, "+-")) > 1 {
		return number{}, notANumber(s)
	}
	coef, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return number{}, notANumber(s)
	}
	if strings.HasPrefix(whole, "-") {
		coef.Neg(coef)
	}
	return normal(coef, exponent-len(fraction))
}

func notANumber(s string) error {
	return invalid("The parameter cannot be converted to a numeric value: %s", s)
}

// normal drops trailing zeros and refuses numbers that DynamoDB cannot hold.
func normal(coef *big.Int, exp int) (number, error) {
	if coef.Sign() == 0 {
		return number{coef: coef}, nil
	}
	text := new(big.Int).Abs(coef).String()
	digits := strings.TrimRight(text, "0")
	if zeros := len(text) - len(digits); zeros > 0 {
		coef = new(big.Int).Quo(coef, power(zeros))
		exp += zeros
	}
	switch magnitude := exp + len(digits) - 1; {
	case magnitude > maxMagnitude:
		return number{}, invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case magnitude < minMagnitude:
		return number{}, invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case len(digits) > maxDigits:
		return number{}, invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return number{coef: coef, exp: exp}, nil
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// aligned returns the coefficients of both numbers at the smaller exponent.
func aligned(a, b number) (x, y *big.Int, exp int) {
	exp = min(a.exp, b.exp)
	x = new(big.Int).Mul(a.coef, power(a.exp-exp))
	y = new(big.Int).Mul(b.coef, power(b.exp-exp))
	return x, y, exp
}

// String writes the number without an exponent, as DynamoDB does.
func (n number) String() string {
	if n.exp >= 0 {
		return n.coef.String() + strings.Repeat("0", n.exp)
	}
	digits := new(big.Int).Abs(n.coef).String()
	sign := ""
	if n.coef.Sign() < 0 {
		sign = "-"
	}
	if point := len(digits) + n.exp; point > 0 {
		return sign + digits[:point] + "." + digits[point:]
	}
	return sign + "0." + strings.Repeat("0", -n.exp-len(digits)) + digits
}

// short returns the value of an integer in its shortest form, which nearly all
// numbers of this store are.
func short(s string) (int64, bool) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > maxShortDigits || digits[0] == '0' && s != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && s[0] != '+'
}

// canonical is the form in which a number is stored and returned.
func canonical(s string) (string, error) {
	if _, ok := short(s); ok {
		return s, nil
	}
	n, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	return n.String(), nil
}

// compareNumbers compares two numbers in canonical form.
func compareNumbers(a, b string) int {
	x, okX := short(a)
	y, okY := short(b)
	if okX && okY {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	m, errM := parseNumber(a)
	n, errN := parseNumber(b)
	if errM != nil || errN != nil {
		return strings.Compare(a, b) // not in canonical form; never stored
	}
	p, q, _ := aligned(m, n)
	return p.Cmp(q)
}

// addNumbers returns a + b, or a - b, of numbers in canonical form.
func addNumbers(a, b string, minus bool) (string, error) {
	x, okX := short(a)
	y, okY := short(b)
	if okX && okY {
		if minus {
			y = -y
		}
		return canonical(strconv.FormatInt(x+y, 10))
	}
	m, err := parseNumber(a)
	if err != nil {
		return "", err
	}
	n, err := parseNumber(b)
	if err != nil {
		return "", err
	}
	p, q, exp := aligned(m, n)
	if minus {
		q.Neg(q)
	}
	sum, err := normal(p.Add(p, q), exp)
	if err != nil {
		return "", err
	}
	return sum.String(), nil
}

// numberSize is the size of a number in bytes, for capacity: a byte for each pair of
// digits, counted from the point, one for the exponent, one for a minus sign.
func numberSize(s string) int {
	var digits string
	exp := 0
	if _, ok := short(s); ok {
		all := strings.TrimPrefix(s, "-")
		digits = strings.TrimRight(all, "0")
		exp = len(all) - len(digits)
	} else if n, err := parseNumber(s); err == nil && n.coef.Sign() != 0 {
		digits, exp = new(big.Int).Abs(n.coef).String(), n.exp
	}
	size := len(digits)
	if exp%2 != 0 && digits != "" {
		size++
	}
	size = 1 + (size+1)/2
	if strings.HasPrefix(s, "-") {
		size++
	}
	return size
}
