package engine

// Stats counts the work of an engine since it was made.
type Stats struct {
	Writes  int64 // conditional writes sent for buckets
	Refused int64 // of them, those whose condition did not hold; DynamoDB bills each as a write
	Resent  int64 // of them, those sent again, after a throttle or a lost reply
	Reads   int64 // of buckets
	Lost    int64 // takes for no admitted request that were not, or may not have been, given back; late takes that were not taken
	Owed    int64 // requests that wait to be written without a caller now: rollbacks, late takes and charges
	Waiting int64 // messages that wait now, as the server has as many as it answers in time
	Halts   int64 // times that refills stopped, because the clock could not be trusted
	Lanes   int64 // buckets remembered now, each shard for itself
	Outages int64 // times that the server was marked unavailable, as it did not answer
	Wrong   int64 // replies that the server never gives to their calls, such as that to another one; each counts as none
	Splits  int64 // shards that this process split in two
	Merges  int64 // pairs of shards that it merged
	Open    bool  // there is an outage, and no call was answered since it began

	// Consumption that is not counted, or may not be, in millitokens of all limits.
	UsageLostStop    int64 // as the store was closed before the server answered
	UsageLostOutage  int64 // as the server did not answer for a minute
	UsageLostReply   int64 // as the reply of its write was lost: it may be counted
	UsageLostDeleted int64 // as the item was deleted before

	LateAdmitted int64 // calls admitted after their deadline, by an estimate of this process
	LateDenied   int64 // calls denied so

	// Tokens that no admitted request has, in millitokens of all limits together, by cause.
	LostLease   int64 // leases of this process that ended before they were returned
	LostUnknown int64 // takes whose outcome stays unknown, and that were not rolled back
	LostTwice   int64 // takes of which a late copy was applied too
	LostOwed    int64 // takes of late admissions, charges and refunds that were never applied
	LostRoom    int64 // given back to a shard that was split or leased since, and had no room for them

	Leases   int64 // items of which this process holds a lease now, or may hold one
	Granted  int64 // leases that began
	Renewed  int64 // times that one was renewed
	Returned int64 // leases that were given back
	Reaped   int64 // leases of processes that have ended, freed by this one
	Served   int64 // ops decided from leases, without a call to the server

	Histories int64 // times that the server came back with another history
	Healed    int64 // buckets that were then brought up to what this process remembers

	Unreplicated int64 // writes that were to wait for a replica of the server, and that none had in time
}

// Stats returns the counts so far.
func (e *Engine) Stats() Stats {
	c := &e.lanes.Counters
	lost := &c.LostUsage
	outages, open := e.guard.Outages()
	return Stats{
		Writes: c.Writes.Load(), Refused: c.Refused.Load(), Resent: c.Resent.Load(), Reads: c.Reads.Load(), Lost: c.Lost.Load(), Owed: c.Owed.Load(), Waiting: int64(e.lanes.Waiting()),
		Halts: c.Halts.Load(), Lanes: int64(e.lanes.Count()), Outages: outages, Wrong: e.guard.WrongReplies(), Splits: c.Splits.Load(), Merges: c.Merges.Load(), Open: open,
		LostLease: c.LostLease.Load(), LostUnknown: c.LostUnknown.Load(), LostTwice: c.LostTwice.Load(), LostOwed: c.LostOwed.Load(), LostRoom: c.LostRoom.Load(),
		LateAdmitted: c.LateAdmitted.Load(), LateDenied: c.LateDenied.Load(), Leases: c.Leases.Load(), Granted: c.Granted.Load(),
		Renewed: c.Renewed.Load(), Returned: c.Returned.Load(), Reaped: c.Reaped.Load(), Served: c.Served.Load(),
		UsageLostStop: lost.Stop.Load(), UsageLostOutage: lost.Outage.Load(), UsageLostReply: lost.Reply.Load(), UsageLostDeleted: lost.Deleted.Load(),
	}
}

// After returns the stats with the counts of an engine before this one.
func (s Stats) After(past Stats) Stats {
	for _, c := range []struct {
		to   *int64
		more int64
	}{
		{&s.Writes, past.Writes},
		{&s.Refused, past.Refused},
		{&s.Resent, past.Resent},
		{&s.Reads, past.Reads},
		{&s.Lost, past.Lost},
		{&s.Halts, past.Halts},
		{&s.Splits, past.Splits},
		{&s.Merges, past.Merges},
		{&s.UsageLostStop, past.UsageLostStop},
		{&s.UsageLostOutage, past.UsageLostOutage},
		{&s.UsageLostReply, past.UsageLostReply},
		{&s.UsageLostDeleted, past.UsageLostDeleted},
		{&s.LateAdmitted, past.LateAdmitted},
		{&s.LateDenied, past.LateDenied},
		{&s.LostLease, past.LostLease},
		{&s.LostUnknown, past.LostUnknown},
		{&s.LostTwice, past.LostTwice},
		{&s.LostOwed, past.LostOwed},
		{&s.LostRoom, past.LostRoom},
		{&s.Granted, past.Granted},
		{&s.Renewed, past.Renewed},
		{&s.Returned, past.Returned},
		{&s.Reaped, past.Reaped},
		{&s.Served, past.Served},
	} {
		*c.to += c.more
	}
	return s
}
