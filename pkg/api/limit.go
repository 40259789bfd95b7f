package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limit is one limit as a configuration file writes it. In JSON it is the rate alone where
// it has no more, else an object.
type Limit struct {
	// Rate is tokens and a period, such as 100/minute, 5/30s or 1000/day; or unlimited.
	Rate string `json:"rate"`
	// Burst is the capacity in tokens; 0 = the tokens of the rate.
	Burst int64 `json:"burst,omitempty"`
	// MaxDebt is the number of tokens that charges may go below zero; nil = the default, 10
	// times the capacity.
	MaxDebt *int64 `json:"max_debt,omitempty"`
}

// limitObject is a Limit without its methods.
type limitObject Limit

// MarshalJSON implements json.Marshaler.
func (l Limit) MarshalJSON() ([]byte, error) {
	if l.Burst == 0 && l.MaxDebt == nil {
		return json.Marshal(l.Rate)
	}
	return json.Marshal(limitObject(l))
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *Limit) UnmarshalJSON(text []byte) error {
	*l = Limit{}
	if json.Unmarshal(text, &l.Rate) == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode((*limitObject)(l)); err != nil {
		return fmt.Errorf(`a limit is a rate, such as "100/minute", or {"rate": "100/minute", "burst": 200, "max_debt": 0}: %w`, err)
	}
	return nil
}

// String returns the limit in the form that [ParseLimit] reads: "100/minute",
// "100/minute burst 200 max_debt 0", "unlimited".
func (l Limit) String() string {
	s := l.Rate
	if l.Burst != 0 {
		s += " burst " + strconv.FormatInt(l.Burst, 10)
	}
	if l.MaxDebt != nil {
		s += " max_debt " + strconv.FormatInt(*l.MaxDebt, 10)
	}
	return s
}

var errLimit = errors.New(`a limit is RATE, RATE burst TOKENS, or RATE burst TOKENS max_debt TOKENS, such as "100/minute burst 200"`)

// ParseLimit reads the form of [Limit.String]. The service checks the rate itself.
func ParseLimit(text string) (Limit, error) {
	fields := strings.Fields(text)
	if len(fields)%2 == 0 {
		return Limit{}, fmt.Errorf("%w, not %.100q", errLimit, text)
	}
	l := Limit{Rate: fields[0]}
	for i := 1; i < len(fields); i += 2 {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		switch {
		case err != nil || n < 0:
			return Limit{}, fmt.Errorf("%s is %.100q; it must be a whole number of tokens", fields[i], fields[i+1])
		case fields[i] == "burst" && l.Burst == 0 && n > 0:
			l.Burst = n
		case fields[i] == "max_debt" && l.MaxDebt == nil:
			l.MaxDebt = &n
		default:
			return Limit{}, fmt.Errorf("%w, not %.100q", errLimit, text)
		}
	}
	return l, nil
}
