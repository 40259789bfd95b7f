package descriptor

import (
	"sync"
	"sync/atomic"
	"time"
)

// AskedWithin is how long a limit counts as asked after such a request.
const AskedWithin = time.Hour

// Asked has the time at which each limit of an envoyproxy/ratelimit file was last asked with an
// explicit 0 or without a number. It has one time for each limit of the rules in force, and none
// for values of descriptors. It is safe for concurrent use. A process needs one.
type Asked struct {
	mu   sync.Mutex
	last map[askedLimit]*atomic.Int64 // Unix milliseconds; 0 = never
}

// askedLimit identifies a limit across reloads.
type askedLimit struct{ domain, way string }

// NewAsked returns the times of a process that starts.
func NewAsked() *Asked { return &Asked{last: map[askedLimit]*atomic.Int64{}} }

// Of returns the times for rules that come into force. A limit that the earlier rules had too keeps
// its time. The times of other limits are forgotten.
func (a *Asked) Of(r *Rules) *AskedRules {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := &AskedRules{last: make([]*atomic.Int64, r.Len())}
	kept := map[askedLimit]*atomic.Int64{}
	for _, d := range r.Domains() {
		for _, rule := range d.rules {
			if rule.leaf == nil {
				continue
			}
			key := askedLimit{domain: d.name, way: rule.leaf.way}
			last := a.last[key]
			if last == nil {
				last = new(atomic.Int64)
			}
			kept[key], of.last[rule.index] = last, last
		}
	}
	a.last = kept
	return of
}

// AskedRules is the times of [Asked] for one set of rules.
type AskedRules struct {
	last []*atomic.Int64 // by Rule.Index
}

// note sets the time at which the limit of a rule was asked.
func (a *AskedRules) note(r *Rule, now int64) {
	const second = 1000 // so that not every call writes the same memory
	if a == nil {
		return
	}
	if last := a.last[r.index]; now-last.Load() >= second || now < last.Load() {
		last.Store(now)
	}
}

// charges reports whether an explicit number above 0 is a charge to the rule. Without times none is: one request
// alone is never a charge.
func (a *AskedRules) charges(r *Rule, now int64) bool {
	if a == nil {
		return false
	}
	last := a.last[r.index].Load()
	return last > 0 && now-last <= AskedWithin.Milliseconds()
}
