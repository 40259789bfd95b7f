package dynamo

// Stats counts the work of a store since it was made. Its fields are those of the
// engine's, in the same order.
type Stats struct {
	Writes  int64 // conditional writes sent for buckets
	Refused int64 // of them, those whose condition did not hold; DynamoDB bills each as a write
	Resent  int64 // of them, those sent again, after a throttle or a lost reply
	Reads   int64 // of buckets
	Lost    int64 // takes for no admitted request that were not, or may not have been, given back; late takes that were not taken
	Owed    int64 // requests that wait to be written without a caller now: rollbacks, late takes and charges
	Halts   int64 // times that refills stopped, because the clock could not be trusted
	Lanes   int64 // buckets remembered now, each shard for itself
	Outages int64 // times that DynamoDB was marked unavailable, as it did not answer
	Wrong   int64 // replies that DynamoDB never gives to their calls, such as that to another one; each counts as none
	Splits  int64 // shards that this process split in two
	Merges  int64 // pairs of shards that it merged
	Open    bool  // there is an outage, and no call was answered since it began

	// Consumption that is not counted, or may not be, in millitokens of all limits.
	UsageLostStop    int64 // as the store was closed before DynamoDB answered
	UsageLostOutage  int64 // as DynamoDB did not answer for a minute
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
	Served   int64 // ops decided from leases, without a call to DynamoDB
}
