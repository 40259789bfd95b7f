package engine

// Stats counts what an engine has done since it was made.
type Stats struct {
	Writes  int64 // conditional writes sent for buckets
	Refused int64 // of them, those whose condition did not hold; DynamoDB bills each as a write
	Resent  int64 // of them, those sent again after a lost reply
	Reads   int64 // of buckets
	Lost    int64 // takes for no admitted request that were not, or may not have been, given back
	Owed    int64 // requests that wait now to be written without a caller: give-backs, late takes
	Halts   int64 // times that refills stopped, because the clock could not be trusted
	Lanes   int64 // items remembered now
	Outages int64 // times that DynamoDB was marked unavailable
	Splits  int64 // shards that this process split in two
	Merges  int64 // pairs of shards that it made one again
	Open    bool  // a call would be refused now, because of an outage

	LateAdmitted int64 // calls that were admitted after their deadline, by an estimate
	LateDenied   int64 // calls that were denied so

	Leases   int64 // items of which tokens are held on lease now, or may be
	Granted  int64 // leases that began
	Renewed  int64 // times that one was renewed
	Returned int64 // leases that were given back
	Reaped   int64 // leases of processes that are no more, freed by this one
	Served   int64 // ops decided from leases, without a call to DynamoDB
}

// Stats returns what the engine has done so far.
func (e *Engine) Stats() Stats {
	c := &e.lanes.Counters
	outages, open := e.guard.Outages()
	return Stats{
		Writes: c.Writes.Load(), Refused: c.Refused.Load(), Resent: c.Resent.Load(), Reads: c.Reads.Load(), Lost: c.Lost.Load(), Owed: c.Owed.Load(),
		Halts: c.Halts.Load(), Lanes: int64(e.lanes.Count()), Outages: outages, Splits: c.Splits.Load(), Merges: c.Merges.Load(), Open: open,
		LateAdmitted: c.LateAdmitted.Load(), LateDenied: c.LateDenied.Load(), Leases: c.Leases.Load(), Granted: c.Granted.Load(),
		Renewed: c.Renewed.Load(), Returned: c.Returned.Load(), Reaped: c.Reaped.Load(), Served: c.Served.Load(),
	}
}
