package lane

// HandOver stops the lanes as [Lanes.Stop] does, in favour of others of the same table. These get the owed requests that are
// not applied, or are takes in doubt. Leases are not returned: their server is gone. The others free them in the items
// after [Lanes.Leave], where they count as spent. Both must have the same Predecessors.
func (s *Lanes) HandOver(to *Lanes) {
	s.closing.Store(true)
	adopt := func(r *Request) {
		to.Send(r) // rule: a server that came back gets what is owed
	}
	s.heir.Store(&adopt)
	s.Stop()
}

// Leave has the next lanes free the leases of these. No call is in flight any more.
func (s *Lanes) Leave() {
	s.cfg.Before.add(s.self.replica()) // rule: leases of the lanes before are freed at once
}
