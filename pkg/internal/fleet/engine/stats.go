package engine

// Stats counts the work of an engine since it was made.
type Stats struct {
	Writes  int64 // conditional writes sent for buckets
	Refused int64 // of them, those whose condition did not hold; DynamoDB bills each as a write
	Resent  int64 // of them, those sent again after a lost reply
	Reads   int64 // of buckets
	Lost    int64 // takes for no admitted request that were not, or may not have been, given back
	Owed    int64 // requests that wait now to be written without a caller: rollbacks, late takes
	Halts   int64 // times that refills stopped, because the clock could not be trusted
	Lanes   int64 // items remembered now
	Outages int64 // times that DynamoDB was marked unavailable
	Wrong   int64 // replies that DynamoDB never gives to their calls; each counts as none
	Splits  int64 // shards that this process split in two
	Merges  int64 // pairs of shards that it made one again
	Open    bool  // there is an outage, and no call was answered since it began

	// Consumption that is not counted, or may not be, in millitokens of all limits.
	UsageLostStop    int64 // as the process ended before DynamoDB answered
	UsageLostOutage  int64 // as DynamoDB did not answer for as long as owed requests are tried
	UsageLostReply   int64 // as the reply of its write was lost: it may be counted
	UsageLostDeleted int64 // as the item was deleted before

	LateAdmitted int64 // calls that were admitted after their deadline, by an estimate
	LateDenied   int64 // calls that were denied so

	// Tokens that no admitted request has, in millitokens of all limits together, by cause.
	LostLease   int64 // leases of this process that ended before they were returned
	LostUnknown int64 // takes whose outcome stays unknown, and that were not rolled back
	LostTwice   int64 // takes of which a late copy was applied too
	LostOwed    int64 // takes of late admissions, charges and refunds that were never applied
	LostRoom    int64 // given back to a shard that was split or leased since, and had no room for them

	Leases   int64 // items of which tokens are held on lease now, or may be
	Granted  int64 // leases that began
	Renewed  int64 // times that one was renewed
	Returned int64 // leases that were given back
	Reaped   int64 // leases of processes that have ended, freed by this one
	Served   int64 // ops decided from leases, without a call to DynamoDB
}

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	c := &e.lanes.Counters
	lost := &c.LostUsage
	outages, open := e.guard.Outages()
	return Stats{
		Writes: c.Writes.Load(), Refused: c.Refused.Load(), Resent: c.Resent.Load(), Reads: c.Reads.Load(), Lost: c.Lost.Load(), Owed: c.Owed.Load(),
		Halts: c.Halts.Load(), Lanes: int64(e.lanes.Count()), Outages: outages, Wrong: e.guard.WrongReplies(), Splits: c.Splits.Load(), Merges: c.Merges.Load(), Open: open,
		LostLease: c.LostLease.Load(), LostUnknown: c.LostUnknown.Load(), LostTwice: c.LostTwice.Load(), LostOwed: c.LostOwed.Load(), LostRoom: c.LostRoom.Load(),
		LateAdmitted: c.LateAdmitted.Load(), LateDenied: c.LateDenied.Load(), Leases: c.Leases.Load(), Granted: c.Granted.Load(),
		Renewed: c.Renewed.Load(), Returned: c.Returned.Load(), Reaped: c.Reaped.Load(), Served: c.Served.Load(),
		UsageLostStop: lost.Stop.Load(), UsageLostOutage: lost.Outage.Load(), UsageLostReply: lost.Reply.Load(), UsageLostDeleted: lost.Deleted.Load(),
	}
}
