package lane

// HandOver stops the lanes as [Lanes.Stop] does, in favour of others of the same table. These get the owed requests that are
// not applied, or are takes in doubt. Messages under way end first. Leases are not returned: their server is gone. The
// others free them in the items, where they count as spent. Both must have the same Predecessors.
func (s *Lanes) HandOver(to *Lanes) {
	s.closing.Store(true)
	adopt := func(r *Request) {
		to.Send(r) // rule: a server that came back gets what is owed
	}
	s.heir.Store(&adopt)
	s.refuse()
	s.work.wait() // rule: messages under way have their replies, which say whether what is owed was written
	s.Stop()
	s.cfg.Before.add(s.self.replica()) // rule: leases of the lanes before are freed at once
}
