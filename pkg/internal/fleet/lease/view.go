package lease

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// Version orders the states of an item: by epoch, then by serial number.
type Version struct {
	Epoch  int64 // raised by each write that other writes must not cross
	Serial int64 // raised by each write
}

// after reports whether v is a later state than o.
func (v Version) after(o Version) bool {
	return v.Epoch > o.Epoch || v.Epoch == o.Epoch && v.Serial > o.Serial
}

// View is an item as a reply showed it.
type View struct {
	Exists  bool
	Version Version

	Rate   int                  // parts of the rate that the centre has
	Room   int                  // parts of the room that the centre has
	Centre []tokenbucket.Bucket // by limit; below zero is debt
	Params []tokenbucket.Params // of Centre, by limit; see Scale

	Own    Slot // of this replica, if HasOwn
	HasOwn bool
	Others []Slot // of the other replicas

	// Replicas is how many replicas use the item, as far as is known, with this one.
	Replicas int

	// Recall says that the item waits for all leases to be returned: none is asked for.
	Recall bool
}

// tokens returns the millitokens of a limit that the centre has at a time, by the view.
// Below zero is debt.
func (v *View) tokens(l int, now int64) int64 {
	return v.Centre[l].Available(v.Params[l], now)
}

// full reports whether the centre has no room for more of any limit at a time.
func (v *View) full(now int64) bool {
	for l := range v.Centre {
		if v.tokens(l, now) < v.Params[l].Capacity {
			return false
		}
	}
	return true
}

// recalled returns until when all leases are to be returned, by a view of now; 0 where
// they are not.
func (v *View) recalled(now int64) int64 {
	if v.Recall { // rule: a lease is returned when it is asked back
		return forever
	}
	until := int64(0)
	for i := range v.Others {
		if s := &v.Others[i]; s.wishes(now) {
			until = max(until, now-s.age(now)+wishLasts)
		}
	}
	return until
}

// latest returns the latest time that the centre was refilled to: no plan is earlier.
func (v *View) latest() int64 {
	at := int64(0)
	for _, b := range v.Centre {
		at = max(at, b.Refilled)
	}
	return at
}

// unseen returns the view of an item that was never written: all parts are the centre's,
// and it is full.
func unseen(limits []tokenbucket.Params) View {
	v := View{Rate: Parts, Room: Parts, Centre: make([]tokenbucket.Bucket, 0, len(limits)), Params: make([]tokenbucket.Params, 0, len(limits))}
	for _, p := range limits {
		whole, _ := Scale(p, Parts, Parts)
		v.Params = append(v.Params, whole)
		v.Centre = append(v.Centre, tokenbucket.Full(whole, 0))
	}
	return v
}
