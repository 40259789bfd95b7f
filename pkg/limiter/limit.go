package limiter

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/money"
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
//
// A limit whose Capacity and RefillAmount are 0 has a rate of 0. It admits nothing, and has no balance:
// decisions ask no store about it, and buckets do not have it.
//
// A limit with a Calendar is a quota: at most Capacity tokens in each window. Each window has a bucket of
// its own, see [BucketKey], under a limit that never refills.
//
// A limit with a Calendar of the unit [InFlight] is one in flight: at most Capacity tokens of requests that
// have begun and have not ended. A window has four quarters of MaxTime, each with a limit of its own in the
// window's bucket. A request takes from the present quarter and from the next one. It ends when its reservation
// is settled, or at the latest with the next quarter: between MaxTime and twice as long after its begin. So
// each quarter has all requests whose time is not over.
type Limit struct {
	Name         string        // a letter, then letters, digits, '_', '.' or '-'; at most MaxLimitName bytes; not "wcu"
	Capacity     int64         // greatest balance in tokens, 1 to MaxTokens; 0 only of a rate of 0
	RefillAmount int64         // tokens refilled in each RefillPeriod, 0 to MaxTokens; 0 = it never refills
	RefillPeriod time.Duration // 1 second to 366 days, whole milliseconds; 0 with a Calendar
	MaxDebt      int64         // tokens a charge may go below zero; 0 = DefaultMaxDebt × Capacity, NoDebt = none
	Unlimited    bool          // never denies and has no balance; the other numbers are 0
	Calendar     Calendar      // of a quota, and of a limit in flight
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

// Quota returns a limit of so many tokens in each window of a calendar.
func Quota(name string, tokens int64, of Calendar) Limit {
	return Limit{Name: name, Capacity: tokens, Calendar: of}
}

// Concurrent returns a limit of so many tokens in flight, of requests that take maxTime at most.
func Concurrent(name string, tokens int64, maxTime time.Duration) Limit {
	return Limit{Name: name, Capacity: tokens, Calendar: Calendar{Unit: InFlight, MaxTime: maxTime}}
}

// Windowed reports whether the limit has windows: a quota, or a limit in flight.
func (l Limit) Windowed() bool { return l.Calendar.Unit != NoCalendar }

// IsQuota reports whether the limit is a quota.
func (l Limit) IsQuota() bool { return l.Windowed() && !l.IsInFlight() }

// IsInFlight reports whether the limit is one in flight.
func (l Limit) IsInFlight() bool { return l.Calendar.Unit == InFlight }

// PerPeriod returns the tokens that are refilled in a period, and the period. Those of a quota are the
// whole quota and the usual length of a window: a month has 30 days. Those of a limit in flight are the
// whole limit and its longest time.
func (l Limit) PerPeriod() (tokens int64, period time.Duration) {
	const day = 24 * time.Hour
	if l.IsInFlight() {
		return l.Capacity, l.Calendar.MaxTime
	}
	if l.IsQuota() {
		length := [...]time.Duration{CalendarHour: time.Hour, CalendarDay: day, CalendarWeek: 7 * day, CalendarMonth: 30 * day}
		return l.Capacity, length[l.Calendar.Unit]
	}
	return l.RefillAmount, l.RefillPeriod
}

// neverPeriod is the period of limits that never refill.
const neverPeriod = time.Second

// inWindow returns the limit that the bucket of one window of a quota has.
func (l Limit) inWindow() Limit {
	return Limit{Name: l.Name, Capacity: l.Capacity, RefillPeriod: neverPeriod, MaxDebt: l.MaxDebt}
}

// BudgetOf returns the name of the limit that this one is a budget of, see [Calendar.BudgetOf]; "" for none. A rate
// of 0 with such a name is one too, of any unit: it leaves nothing.
func (l Limit) BudgetOf() string {
	if !l.AdmitsNothing() {
		return l.Calendar.BudgetOf(l.Name)
	}
	for unit := CalendarHour; unit <= CalendarMonth; unit++ {
		if of := (Calendar{Unit: unit}).BudgetOf(l.Name); of != "" {
			return of
		}
	}
	return ""
}

// AdmitsNothing reports whether the rate is 0.
func (l Limit) AdmitsNothing() bool { return l.Capacity == 0 && !l.Unlimited }

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
	if l.Calendar != (Calendar{}) {
		return l.validateWindowed()
	}
	if l.Capacity < min(l.RefillAmount, 1) || l.Capacity > MaxTokens {
		return fmt.Errorf("%w: capacity of limit %s is %s; it must be %s", ErrInvalid, l.Name, money.Amount(l.Name, l.Capacity), money.Bounds(l.Name, 1, MaxTokens))
	}
	if l.RefillAmount < 0 || l.RefillAmount > MaxTokens {
		return fmt.Errorf("%w: refill of limit %s is %s; it must be %s", ErrInvalid, l.Name, money.Amount(l.Name, l.RefillAmount), money.Bounds(l.Name, 0, MaxTokens))
	}
	if l.RefillPeriod%time.Millisecond != 0 {
		return fmt.Errorf("%w: period of limit %s is %v; it must be whole milliseconds", ErrInvalid, l.Name, l.RefillPeriod)
	}
	if l.RefillPeriod < time.Second || l.RefillPeriod.Milliseconds() > tokenbucket.MaxPeriod {
		return fmt.Errorf("%w: period of limit %s is %v; it must be 1s to 366 days", ErrInvalid, l.Name, l.RefillPeriod)
	}
	if l.AdmitsNothing() && l.MaxDebt != 0 {
		return fmt.Errorf("%w: limit %s has a rate of 0, and cannot have max_debt: nothing can be charged to it", ErrInvalid, l.Name)
	}
	if l.MaxDebt < NoDebt || l.MaxDebt > MaxTokens {
		return fmt.Errorf("%w: max_debt of limit %s is %s; it must be %s", ErrInvalid, l.Name, money.Amount(l.Name, l.MaxDebt), money.Bounds(l.Name, 0, MaxTokens))
	}
	return nil
}

// validateWindowed is Validate of a limit with windows.
func (l Limit) validateWindowed() error {
	if err := l.Calendar.Validate(); err != nil {
		return fmt.Errorf("limit %s: %w", l.Name, err)
	}
	what := "quota"
	if l.IsInFlight() {
		what = "in_flight"
	}
	switch {
	case l.Capacity < 1 || l.Capacity > MaxTokens:
		return fmt.Errorf("%w: %s of limit %s is %s; it must be %s", ErrInvalid, what, l.Name, money.Amount(l.Name, l.Capacity), money.Bounds(l.Name, 1, MaxTokens))
	case l.RefillAmount != 0 || l.RefillPeriod != 0:
		return fmt.Errorf("%w: limit %s has %s and cannot have a refill", ErrInvalid, l.Name, what)
	case l.IsInFlight() && len(l.Name) > MaxLimitName-len(quarterDot)-1:
		return fmt.Errorf("%w: limit %s has in_flight, and its name is longer than %d bytes", ErrInvalid, l.Name, MaxLimitName-len(quarterDot)-1)
	case l.IsInFlight() && l.MaxDebt != 0:
		return fmt.Errorf("%w: limit %s has in_flight and cannot have max_debt: a request that ended has no debt", ErrInvalid, l.Name)
	case l.MaxDebt < NoDebt || l.MaxDebt > MaxTokens:
		return fmt.Errorf("%w: max_debt of limit %s is %s; it must be %s", ErrInvalid, l.Name, money.Amount(l.Name, l.MaxDebt), money.Bounds(l.Name, 0, MaxTokens))
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
	if l.Windowed() {
		l = l.inWindow()
	}
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
// "100/minute", "100/minute burst 150", "2000000/month calendar", "5 in flight 10m", "unlimited".
func (l Limit) String() string {
	if l.Unlimited {
		return "unlimited"
	}
	switch {
	case l.IsInFlight():
		return fmt.Sprintf("%d %v", l.Capacity, l.Calendar)
	case l.IsQuota():
		return fmt.Sprintf("%d/%v", l.Capacity, l.Calendar)
	}
	s := fmt.Sprintf("%d/%s", l.RefillAmount, periodString(l.RefillPeriod))
	if l.Capacity != l.RefillAmount {
		s += fmt.Sprintf(" burst %d", l.Capacity)
	}
	return s
}

// Text is [Limit.String] as people read it, with dollars and groups of digits, see [money.Amounts].
func (l Limit) Text() string { return money.Amounts(l.Name, l.String()) }

func periodString(d time.Duration) string {
	for name, period := range map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	} {
		if d == period {
			return name
		}
	}
	return durationString(d)
}

// durationString returns a duration without zeros behind the last unit: 10m, not 10m0s.
func durationString(d time.Duration) string {
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
	apart  bool // some are in no bucket that is for all time: a rate of 0, one with windows, or one that is tried
	beside bool // some are asked beside one of another name: a budget, or one that is tried
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
		s.apart = s.apart || l.AdmitsNothing() || l.Windowed() || TriedBeside(l.Name) != ""
		s.beside = s.beside || l.BudgetOf() != "" || TriedBeside(l.Name) != ""
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
		if l.Windowed() {
			_, _ = fmt.Fprintln(h, l.Calendar)
		}
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// Beside reports whether some are asked beside a limit of another name: a quota that is its budget, or one that is
// tried.
func (s *Limits) Beside() bool { return s != nil && s.beside }

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
		if !l.Unlimited && !l.AdmitsNothing() {
			l.Capacity = max(1, l.Capacity/1000*permille+l.Capacity%1000*permille/1000)
			l.RefillAmount = max(min(l.RefillAmount, 1), l.RefillAmount/1000*permille+l.RefillAmount%1000*permille/1000)
		}
		scaled[i] = l
	}
	out, err := NewLimits(scaled...)
	if err != nil { // impossible: a scaled limit is in range
		return s
	}
	return out
}
