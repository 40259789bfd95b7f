package cli

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/api"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// capacityReport is the state of the buckets of a resource. Tokens are sums over buckets, at most
// those of an int64.
type capacityReport struct {
	Resource api.Name         `json:"resource"`
	Buckets  int              `json:"buckets"` // in use
	Limits   []capacityLimit  `json:"limits"`  // in order of names
	Busiest  []capacityBucket `json:"busiest"` // with the greatest part of a limit used, the busiest first

	most int // of Busiest
}

// capacityLimit is a limit of all buckets together.
type capacityLimit struct {
	Name      string     `json:"limit"`
	Buckets   int        `json:"buckets"`   // that have it; unlimited ones are not counted
	Capacity  api.Tokens `json:"capacity"`  // tokens of all when full
	Available api.Tokens `json:"available"` // tokens that are left, debts subtracted
	Empty     int        `json:"empty"`     // buckets with less than one token
	InDebt    int        `json:"in_debt"`   // buckets below zero
	Used      int64      `json:"used"`      // part of the capacity, in thousandths; above 1000 with debts
}

// capacityBucket is a limit of one bucket.
type capacityBucket struct {
	Entity    api.Name   `json:"entity"`
	Variant   string     `json:"variant,omitempty"` // as api.Bucket has it
	Source    string     `json:"source,omitempty"`  // the same
	Name      string     `json:"limit"`
	Rate      string     `json:"rate"`
	Capacity  api.Tokens `json:"capacity"`
	Available api.Tokens `json:"available"`
	Used      int64      `json:"used"` // part of the capacity, in thousandths; above 1000 in debt
}

// newCapacityReport returns an empty report that names at most that many of the busiest buckets.
func newCapacityReport(resource api.Name, busiest int) *capacityReport {
	return &capacityReport{Resource: resource, Limits: []capacityLimit{}, Busiest: []capacityBucket{}, most: busiest}
}

// Add adds a bucket, unless it is of a rule in shadow mode: its lack denies no request.
func (r *capacityReport) Add(b api.Bucket) {
	if b.Shadow {
		return
	}
	r.Buckets++
	for _, l := range b.Limits {
		capacity, ok := capacityOf(l.Limit)
		if !ok || l.Available == nil {
			continue
		}
		one := capacityBucket{Entity: b.Entity, Variant: b.Variant, Source: b.Source, Name: l.Name, Rate: l.Limit.String(), Capacity: capacity, Available: *l.Available, Used: used(capacity, *l.Available)}
		r.sum(&one)
		r.rank(one)
	}
}

// capacityOf is the tokens of a full bucket; false for an unlimited limit.
func capacityOf(l api.Limit) (api.Tokens, bool) {
	text, _, windowed := strings.Cut(l.Rate, " until ")
	if windowed {
		text += "/day" // any period: the tokens are the capacity
	}
	rate, err := config.ParseRate(text)
	if err != nil || rate.Unlimited {
		return 0, false
	}
	return api.Tokens(cmp.Or(l.Burst, rate.Capacity) * limiter.Milli), true
}

// sum adds a limit of a bucket to those of its name.
func (r *capacityReport) sum(b *capacityBucket) {
	i, found := slices.BinarySearchFunc(r.Limits, b.Name, func(l capacityLimit, name string) int { return cmp.Compare(l.Name, name) })
	if !found {
		r.Limits = slices.Insert(r.Limits, i, capacityLimit{Name: b.Name})
	}
	l := &r.Limits[i]
	l.Buckets++
	l.Capacity = add(l.Capacity, b.Capacity)
	l.Available = add(l.Available, b.Available)
	if b.Available < limiter.Milli {
		l.Empty++
	}
	if b.Available < 0 {
		l.InDebt++
	}
	l.Used = used(l.Capacity, l.Available)
}

// rank keeps a limit of a bucket if it is among the busiest.
func (r *capacityReport) rank(b capacityBucket) {
	i, _ := slices.BinarySearchFunc(r.Busiest, b, func(a, b capacityBucket) int {
		return cmp.Or(cmp.Compare(b.Used, a.Used), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Name, b.Name))
	})
	if i >= r.most {
		return
	}
	r.Busiest = slices.Insert(r.Busiest, i, b)
	r.Busiest = r.Busiest[:min(len(r.Busiest), r.most)]
}

// used is the part of a capacity that is not available, in thousandths, rounded down.
func used(capacity, available api.Tokens) int64 {
	taken := add(capacity, -available)
	if capacity <= 0 || taken <= 0 {
		return 0
	}
	if taken > math.MaxInt64/1000 {
		return int64(taken / max(capacity/1000, 1))
	}
	return int64(taken * 1000 / capacity)
}

// add is a sum that stays in range.
func add(a, b api.Tokens) api.Tokens {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64 + 1
	default:
		return sum
	}
}
