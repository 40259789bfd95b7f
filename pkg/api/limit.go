package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/money"
)

// Limit is one limit in the form of a configuration file. In JSON it is an object, or the form of
// [Limit.String]; that of a limit with a rate alone is written so.
type Limit struct {
	// Rate is tokens and a period, such as 100/minute, 5/30s or 1000/day; unlimited; or a quota, such as
	// 2000000/month calendar Europe/Berlin from 15.
	Rate string `json:"rate"`
	// Burst is the capacity in tokens; 0 = the tokens of the rate.
	Burst int64 `json:"burst,omitempty"`
	// MaxDebt is the number of tokens that charges may go below zero; nil = the default, 10
	// times the capacity.
	MaxDebt *int64 `json:"max_debt,omitempty"`
	// Budget is tokens for each window, 1 to 10^12, with events at its thresholds; absent = none.
	// Only limits of the system, resources and entities can have one, and no unlimited limit.
	Budget map[Window]int64 `json:"budget,omitempty"`
	// Dollars says that the limit was read from a text with amounts of dollars, which are tokens here. Only
	// limits of money may have them, see [money.Is].
	Dollars bool `json:"-"`
}

// limitObject is a Limit without its methods.
type limitObject Limit

// MarshalJSON implements json.Marshaler.
func (l Limit) MarshalJSON() ([]byte, error) {
	if l.Burst == 0 && l.MaxDebt == nil && len(l.Budget) == 0 {
		return json.Marshal(l.Rate)
	}
	return json.Marshal(limitObject(l))
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Limit) UnmarshalJSON(text []byte) error {
	*l = Limit{}
	var s string
	if json.Unmarshal(text, &s) == nil {
		read, err := ParseLimit(s)
		if err != nil {
			read = Limit{Rate: s} // the bucket of one window has "until", and the service refuses the rest
		}
		*l = read
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*limitObject)(l)); err != nil {
		return fmt.Errorf(`a limit is a rate, such as "100/minute", or {"rate": "100/minute", "burst": 200, "max_debt": 0, "budget": {"day": 5000}}: %w`, err)
	}
	return nil
}

// String returns the limit in the form that [ParseLimit] reads: "100/minute",
// "100/minute burst 200 max_debt 0 budget 5000/day", "unlimited".
func (l Limit) String() string {
	s := l.Rate
	if l.Burst != 0 {
		s += " burst " + strconv.FormatInt(l.Burst, 10)
	}
	if l.MaxDebt != nil {
		s += " max_debt " + strconv.FormatInt(*l.MaxDebt, 10)
	}
	return strings.Join(append([]string{s}, l.Budgets()...), " budget ")
}

// Budgets returns the budget of each window as text, such as 5000/day, the shortest window first.
func (l Limit) Budgets() []string {
	var all []string
	for _, w := range []Window{Hour, Day, Month} {
		if tokens, ok := l.Budget[w]; ok {
			all = append(all, strconv.FormatInt(tokens, 10)+"/"+string(w))
		}
	}
	return all
}

var errLimit = errors.New(`a limit is RATE, and then any of burst TOKENS, max_debt TOKENS and budget TOKENS/WINDOW, such as "100/minute burst 200 budget 5000/day"`)

// ParseLimit reads the form of [Limit.String], also with amounts of dollars, see [money.Parse]. The service
// checks the rate itself.
func ParseLimit(text string) (Limit, error) {
	l, err := parseLimit(text)
	return l, money.Explain(text, err)
}

func parseLimit(text string) (Limit, error) {
	tokens, err := inTokens(text)
	if err != nil {
		return Limit{}, err
	}
	fields := strings.Fields(tokens)
	if n := len(fields); n > 2 && fields[n-3] == "budget" && fields[n-1] == "deny" {
		return Limit{}, fmt.Errorf("a stored budget does not deny: store a quota beside the limit, named as rpm.day, such as %.50q", fields[n-2]+" calendar")
	}
	rate := rateFields(fields)
	if rate == 0 || (len(fields)-rate)%2 != 0 {
		return Limit{}, fmt.Errorf("%w, not %.100q", errLimit, text)
	}
	l := Limit{Rate: strings.Join(fields[:rate], " "), Dollars: tokens != text}
	for i := rate; i < len(fields); i += 2 {
		if err := l.set(fields[i], fields[i+1]); err != nil {
			return Limit{}, err
		}
	}
	return l, nil
}

// inTokens writes amounts of dollars as tokens.
func inTokens(text string) (tokens string, err error) {
	tokens = regexp.MustCompile(`[0-9_.]+`+money.Unit+`\b`).ReplaceAllStringFunc(text, func(amount string) string {
		n, ok := money.Parse(amount)
		if !ok {
			err = fmt.Errorf("%.100q is no amount of dollars: it is written like 12.50 USD or 1_000 USD", amount)
		}
		return strconv.FormatInt(n, 10)
	})
	return tokens, err
}

// rateFields returns how many fields are those of the rate: one, a quota with its calendar, or a number in
// flight with its longest time.
func rateFields(fields []string) int {
	if len(fields) < 2 || fields[1] != "calendar" && fields[1] != "in" {
		return min(len(fields), 1)
	}
	part := func(f string) bool { return f == "burst" || f == "max_debt" || f == "budget" }
	if n := slices.IndexFunc(fields, part); n >= 0 {
		return n
	}
	return len(fields)
}

// set reads a part of a limit that is not set yet.
func (l *Limit) set(part, text string) error {
	number, window, slash := strings.Cut(text, "/")
	digits, ok := money.Digits(number)
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case !ok && strings.Contains(number, "_"):
		return fmt.Errorf("%.100s is %.100q; %s", part, text, money.Grouping)
	case part == "budget" && (err != nil || n < 1 || !slash):
		return fmt.Errorf("budget is %.100q; it must be tokens and a window, such as 5000/day", text)
	case part == "budget":
		return l.setBudget(Window(window), n)
	case err != nil || n < 0 || slash:
		return fmt.Errorf("%.100s is %.100q; it must be a whole number of tokens", part, text)
	case part == "burst" && l.Burst == 0 && n > 0:
		l.Burst = n
	case part == "max_debt" && l.MaxDebt == nil:
		l.MaxDebt = &n
	default:
		return fmt.Errorf("%w, not %.100q", errLimit, part+" "+text)
	}
	return nil
}

func (l *Limit) setBudget(w Window, tokens int64) error {
	if w != Hour && w != Day && w != Month {
		return fmt.Errorf("the window of a budget is %.100q; it must be hour, day or month", string(w))
	}
	if _, twice := l.Budget[w]; twice {
		return fmt.Errorf("the budget of each %s is given twice", w)
	}
	if l.Budget == nil {
		l.Budget = make(map[Window]int64)
	}
	l.Budget[w] = tokens
	return nil
}
