package lane

// recall has the lane give back what it holds on lease.
func (l *Lane) recall() {}
