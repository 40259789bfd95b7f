package main

import "github.com/ratelimit/ratelimit/pkg/dynamo"

// tableState is one look at a store.
type tableState struct {
	dynamo.Stats

	clock dynamo.ClockState
}

// newTableMetrics reports what a DynamoDB store has done, and on its clock.
func newTableMetrics(store *dynamo.Store, clock *dynamo.Clock) *statsMetrics[tableState] {
	m := &statsMetrics[tableState]{prefix: "ratelimit_dynamodb_", look: func() tableState { return tableState{store.Stats(), clock.State()} }}
	m.count("writes_total", "Conditional writes of buckets.", func(s *tableState) int64 { return s.Writes })
	m.count("refused_writes_total", "Writes of buckets whose condition did not hold; DynamoDB bills each.", func(s *tableState) int64 { return s.Refused })
	m.count("resent_writes_total", "Writes of buckets that were sent again, after a throttle or a lost reply.", func(s *tableState) int64 { return s.Resent })
	m.count("reads_total", "Reads of buckets.", func(s *tableState) int64 { return s.Reads })
	m.gauge("leases", "Token leases that this process holds.", func(s *tableState) float64 { return float64(s.Leases) })
	m.count("lease_grants_total", "Token leases granted to this process.", func(s *tableState) int64 { return s.Granted })
	m.count("lease_renewals_total", "Token leases that were renewed before they ran out.", func(s *tableState) int64 { return s.Renewed })
	m.count("lease_returns_total", "Token leases released with tokens left.", func(s *tableState) int64 { return s.Returned })
	m.count("lease_reaps_total", "Token leases of processes that ended without releasing them, revoked by this one.", func(s *tableState) int64 { return s.Reaped })
	m.count("lease_decisions_total", "Decisions made from token leases, without a call.", func(s *tableState) int64 { return s.Served })
	m.count("late_admissions_total", "Calls admitted at their deadline by an estimate, because DynamoDB was slow; their tokens are taken later.", func(s *tableState) int64 { return s.LateAdmitted })
	m.count("late_denials_total", "Calls denied at their deadline by an estimate, because DynamoDB was slow.", func(s *tableState) int64 { return s.LateDenied })
	m.gauge("owed", "Requests to be written after their callers left: refunds, and tokens of late calls.", func(s *tableState) float64 { return float64(s.Owed) })
	m.count("lost_give_backs_total", "Takes of denied requests that were perhaps not rolled back, and takes of late admissions that failed.", func(s *tableState) int64 { return s.Lost })
	m.count("splits_total", "Buckets or shards split in two, because one item cannot take their writes.", func(s *tableState) int64 { return s.Splits })
	m.count("merges_total", "Pairs of shards merged after a quiet time.", func(s *tableState) int64 { return s.Merges })
	m.count("halts_total", "Stops of refills, because the clock could not be trusted.", func(s *tableState) int64 { return s.Halts })
	m.count("outages_total", "Times that DynamoDB was marked unavailable.", func(s *tableState) int64 { return s.Outages })
	m.gauge("unavailable", "1 while DynamoDB is marked unavailable and calls are refused at once.", func(s *tableState) float64 { return truth(s.Open) })
	m.gauge("lanes", "Buckets whose state this process has in memory.", func(s *tableState) float64 { return float64(s.Lanes) })
	m.gauge("clock_offset_seconds", "Correction of this machine's clock by DynamoDB's replies.", func(s *tableState) float64 { return s.clock.Offset.Seconds() })
	m.gauge("clock_uncertainty_seconds", "Greatest possible error of the corrected clock.", func(s *tableState) float64 { return s.clock.Uncertainty.Seconds() })
	m.gauge("clock_trusted", "1 while refills go by the clock, 0 while it may be wrong by too much and nothing is refilled.", func(s *tableState) float64 { return truth(s.clock.Trusted) })
	return m
}

// truth is 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
