package lane

// maxGone is of how many lanes before, at most, leases are freed at once.
const maxGone = 8

// HandOver stops the lanes as [Lanes.Stop] does, in favour of others of the same table. They get the
// owed requests that are certainly not applied. Leases are not returned: their server is gone. The
// others free what of them is in items, and count it as spent.
func (s *Lanes) HandOver(to *Lanes) {
	s.closing.Store(true)
	adopt := func(r *Request) {
		if r.Takes() {
			r.forced()
		}
		next := r.owed(r.Request)
		next.late = r.late
		to.Send(next) // rule: a server that came back gets what is owed
	}
	s.heir.Store(&adopt)
	s.refuse()
	s.work.wait() // rule: messages under way have their replies, which say whether what is owed was written
	s.Stop()
	gone := []uint32{s.self.replica()} // nothing is served any more
	if before := s.gone.Load(); before != nil {
		gone = append(gone, (*before)[:min(len(*before), maxGone-1)]...)
	}
	to.gone.Store(&gone) // rule: leases of the lanes before are freed at once
}
