package lane

// Outdate has no request denied any more by the states of a shard that were asked for before
// now: the item was changed beside its lane. The lane reads it.
func (s *Lanes) Outdate(site *Site, index int) {
	l := s.hold(site, index)
	l.mu.Lock()
	l.view.since = s.cfg.Now()
	s.unlock(l)
	l.holds.Add(-1)
	s.Assign(site, index, Look)
}
