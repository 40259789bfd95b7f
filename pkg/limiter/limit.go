package limiter

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// Milli is the number of millitokens in one token.
	Milli = tokenbucket.Milli
	// MaxTokens is the greatest capacity and refill amount of a limit: 10^12 tokens.
	MaxTokens = tokenbucket.MaxCapacity / tokenbucket.Milli
	// MaxLimits is the greatest number of limits in one bucket.
	MaxLimits = 16
	// MaxDormant is the number of dormant limits that a bucket keeps one by one, see [Op].
	MaxDormant = 8
	// MaxLimitName is the greatest length of a limit's name in bytes.
	MaxLimitName = 64
	// DefaultMaxDebt is the default bound on debt by charges, as a multiple of the capacity.
	DefaultMaxDebt = 10
	// NoDebt as a Limit.MaxDebt stops charges at a balance of zero.
	NoDebt = -1
)

// Limit is one rate: a token bucket's capacity and its refill. The zero value is
// not valid; use a constructor. Limits are values and are compared with ==.
type Limit struct {
	Name         string        // a letter, then letters, digits, '_', '.' or '-'; at most MaxLimitName bytes; not "wcu"
	Capacity     int64         // greatest balance in tokens, 1 to MaxTokens
	RefillAmount int64         // tokens refilled in each RefillPeriod, 1 to MaxTokens
	RefillPeriod time.Duration // 1 second to 366 days, whole milliseconds
	MaxDebt      int64         // tokens a charge may go below zero; 0 = DefaultMaxDebt × Capacity, NoDebt = none
	Unlimited    bool          // never denies and has no balance; the other numbers are 0
}

// PerSecond returns a limit of rate tokens a second, holding as many.
func PerSecond(name string, rate int64) Limit { return Custom(name, rate, rate, time.Second) }

// PerMinute returns a limit of rate tokens a minute, holding as many.
func PerMinute(name string, rate int64) Limit { return Custom(name, rate, rate, time.Minute) }

// PerHour returns a limit of rate tokens an hour, holding as many.
func PerHour(name string, rate int64) Limit { return Custom(name, rate, rate, time.Hour) }

// PerDay returns a limit of rate tokens in 24 hours, holding as many.
func PerDay(name string, rate int64) Limit { return Custom(name, rate, rate, 24*time.Hour) }

// Custom returns a limit with this capacity that refills refillAmount tokens in each refillPeriod.
func Custom(name string, capacity, refillAmount int64, refillPeriod time.Duration) Limit {
	return Limit{Name: name, Capacity: capacity, RefillAmount: refillAmount, RefillPeriod: refillPeriod}
}

// Unlimited returns a limit that never denies. It resolves a name, so that it exempts an entity
// from the limits of its resource or of the system.
func Unlimited(name string) Limit { return Limit{Name: name, Unlimited: true} }

// WithBurst returns the limit with another capacity: burst tokens may be used at
// once, the sustained rate stays.
func (l Limit) WithBurst(burst int64) Limit {
	l.Capacity = burst
	return l
}

// WithMaxDebt returns the limit with a bound on how far charges may take its
// balance below zero, in tokens; NoDebt for none.
func (l Limit) WithMaxDebt(tokens int64) Limit {
	l.MaxDebt = tokens
	return l
}

// Validate returns the first error of the limit, wrapping [ErrInvalid].
func (l Limit) Validate() error {
	if err := ValidateLimitName(l.Name); err != nil {
		return err
	}
	if l.Unlimited {
		if l.Capacity != 0 || l.RefillAmount != 0 || l.RefillPeriod != 0 || l.MaxDebt != 0 {
			return fmt.Errorf("%w: limit %s is unlimited and cannot have numbers", ErrInvalid, l.Name)
		}
		return nil
	}
	if l.Capacity < 1 || l.Capacity > MaxTokens {
		return fmt.Errorf("%w: capacity of limit %s is %d; it must be 1 to %d tokens", ErrInvalid, l.Name, l.Capacity, int64(MaxTokens))
	}
	if l.RefillAmount < 1 || l.RefillAmount > MaxTokens {
		return fmt.Errorf("%w: refill of limit %s is %d; it must be 1 to %d tokens", ErrInvalid, l.Name, l.RefillAmount, int64(MaxTokens))
	}
	if l.RefillPeriod%time.Millisecond != 0 {
		return fmt.Errorf("%w: period of limit %s is %v; it must be whole milliseconds", ErrInvalid, l.Name, l.RefillPeriod)
	}
	if err := l.Params().Validate(); err != nil {
		return fmt.Errorf("%w: period of limit %s is %v; it must be 1s to 366 days", ErrInvalid, l.Name, l.RefillPeriod)
	}
	if l.MaxDebt < NoDebt || l.MaxDebt > MaxTokens {
		return fmt.Errorf("%w: max_debt of limit %s is %d; it must be 0 to %d tokens", ErrInvalid, l.Name, l.MaxDebt, int64(MaxTokens))
	}
	return nil
}

// ValidateLimitName returns an error that wraps [ErrInvalid] if a limit cannot have this name.
func ValidateLimitName(name string) error {
	const rule = "a limit's name is a letter, then letters, digits, '_', '.' or '-', at most 64 in all"
	if name == "wcu" {
		return fmt.Errorf("%w: the limit name wcu is reserved", ErrInvalid)
	}
	if name == "" || len(name) > MaxLimitName || !isLetter(name[0]) {
		return fmt.Errorf("%w: limit name %q: %s", ErrInvalid, name, rule)
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return fmt.Errorf("%w: limit name %q: %s", ErrInvalid, name, rule)
		}
	}
	return nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Params returns the limit in the units of the arithmetic.
func (l Limit) Params() tokenbucket.Params {
	return tokenbucket.Params{
		Capacity: l.Capacity * Milli,
		Amount:   l.RefillAmount * Milli,
		Period:   l.RefillPeriod.Milliseconds(),
	}
}

// DebtFloor returns the lowest balance that charges may lead to, in millitokens, 0 or below.
func (l Limit) DebtFloor() int64 {
	switch l.MaxDebt {
	case NoDebt:
		return 0
	case 0:
		return -DefaultMaxDebt * l.Capacity * Milli
	default:
		return -l.MaxDebt * Milli
	}
}

// String returns the limit as a configuration file writes it, without its name:
// "100/minute", "100/minute burst 150", "unlimited".
func (l Limit) String() string {
	if l.Unlimited {
		return "unlimited"
	}
	s := fmt.Sprintf("%d/%s", l.RefillAmount, periodString(l.RefillPeriod))
	if l.Capacity != l.RefillAmount {
		s += fmt.Sprintf(" burst %d", l.Capacity)
	}
	return s
}

func periodString(d time.Duration) string {
	for name, period := range map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	} {
		if d == period {
			return name
		}
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Limits is an immutable set of limits with different names: the limits that one
// bucket is under. The zero value and nil are the empty set.
type Limits struct {
	limits []Limit // by name
	params []tokenbucket.Params
	hash   uint64
}

// NewLimits returns the set of the given limits, at most [MaxLimits]. It refuses
// an invalid limit and a name given twice, wrapping [ErrInvalid].
func NewLimits(limits ...Limit) (*Limits, error) {
	if len(limits) > MaxLimits {
		return nil, fmt.Errorf("%w: %d limits; a bucket has at most %d", ErrInvalid, len(limits), MaxLimits)
	}
	s := &Limits{limits: slices.Clone(limits), params: make([]tokenbucket.Params, len(limits))}
	slices.SortFunc(s.limits, func(a, b Limit) int { return strings.Compare(a.Name, b.Name) })
	for i, l := range s.limits {
		if err := l.Validate(); err != nil {
			return nil, err
		}
		if i > 0 && s.limits[i-1].Name == l.Name {
			return nil, fmt.Errorf("%w: limit %s is given twice", ErrInvalid, l.Name)
		}
		s.params[i] = l.Params()
	}
	s.hash = hashLimits(s.limits)
	return s, nil
}

// hashLimits depends only on the limits, so that it is the same in every process and every version
// of the program.
func hashLimits(limits []Limit) uint64 {
	h := sha256.New()
	for _, l := range limits {
		_, _ = fmt.Fprintf(h, "%s %d %d %d %d %t\n", l.Name, l.Capacity, l.RefillAmount, l.RefillPeriod.Milliseconds(), l.DebtFloor(), l.Unlimited)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Len returns the number of limits.
func (s *Limits) Len() int {
	if s == nil {
		return 0
	}
	return len(s.limits)
}

// At returns the i-th limit in order of names.
func (s *Limits) At(i int) Limit { return s.limits[i] }

// Unlimited reports whether the i-th limit is unlimited.
func (s *Limits) Unlimited(i int) bool { return s.limits[i].Unlimited }

// Params returns the i-th limit in the units of the arithmetic.
func (s *Limits) Params(i int) tokenbucket.Params { return s.params[i] }

// Find returns the index of the limit with the name, or -1.
func (s *Limits) Find(name string) int {
	if s == nil {
		return -1
	}
	for i := range s.limits {
		if s.limits[i].Name == name {
			return i
		}
	}
	return -1
}

// AddNames adds the names of the limits to a set of names.
func (s *Limits) AddNames(names map[string]bool) {
	for i := range s.Len() {
		names[s.limits[i].Name] = true
	}
}

// Hash identifies the content of the set, the same in every process.
func (s *Limits) Hash() uint64 {
	if s == nil {
		return 0
	}
	return s.hash
}

// Scale returns the set with every capacity and refill amount cut to permille thousandths, at least
// one token. That is the share of one replica during an outage of the store. permille is 1 to 1000.
func (s *Limits) Scale(permille int64) *Limits {
	scaled := make([]Limit, s.Len())
	for i := range scaled {
		l := s.limits[i]
		if !l.Unlimited {
			l.Capacity = max(1, l.Capacity/1000*permille+l.Capacity%1000*permille/1000)
			l.RefillAmount = max(1, l.RefillAmount/1000*permille+l.RefillAmount%1000*permille/1000)
		}
		scaled[i] = l
	}
	out, err := NewLimits(scaled...)
	if err != nil { // impossible: a scaled limit is in range
		return s
	}
	return out
}
