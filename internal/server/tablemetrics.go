package server

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const lostHelp = "Tokens that no request has: a lease not returned, an unknown outcome, a late copy, a pending charge never applied, no room for a refund."

// tableState is one reading of a store.
type tableState struct {
	dynamo.Stats

	clock dynamo.ClockState
}

// tableServer is a server that has tables, as metrics name it.
type tableServer struct {
	prefix string // of metrics
	name   string
	bills  string // what a refused write costs there; "" = nothing
	far    string // how far the time of a reply may be from this machine's clock

	forgets bool // it can come back with an older state
}

func onDynamoDB() tableServer {
	return tableServer{prefix: "ratelimit_dynamodb_", name: "DynamoDB", bills: "; DynamoDB bills each", far: "store.dynamodb.max_clock_offset"}
}

func onValkey() tableServer {
	return tableServer{prefix: "ratelimit_valkey_", name: "the server", far: yamlcfg.ShortDuration(dynamo.DefaultMaxClockOffset), forgets: true}
}

// newTableMetrics reports the work of a store that has a table, and the state of its clock. look reads
// both.
func newTableMetrics(of tableServer, look func() tableState) *StatsMetrics[tableState] {
	m := &StatsMetrics[tableState]{Prefix: of.prefix, Look: look}
	m.Count("writes_total", "Conditional writes of buckets.", func(s *tableState) int64 { return s.Writes })
	m.Count("refused_writes_total", "Writes of buckets whose condition did not hold"+of.bills+".", func(s *tableState) int64 { return s.Refused })
	m.Count("resent_writes_total", "Writes of buckets sent again: a throttle, or a lost reply.", func(s *tableState) int64 { return s.Resent })
	m.Count("reads_total", "Reads of buckets.", func(s *tableState) int64 { return s.Reads })
	m.Gauge("leases", "Token leases of this process.", func(s *tableState) float64 { return float64(s.Leases) })
	m.Count("lease_grants_total", "Token leases granted.", func(s *tableState) int64 { return s.Granted })
	m.Count("lease_renewals_total", "Token leases renewed before they ran out.", func(s *tableState) int64 { return s.Renewed })
	m.Count("lease_returns_total", "Token leases released with tokens left.", func(s *tableState) int64 { return s.Returned })
	m.Count("lease_reaps_total", "Token leases of ended processes that this one revoked.", func(s *tableState) int64 { return s.Reaped })
	m.Count("lease_decisions_total", "Decisions from token leases, without a call.", func(s *tableState) int64 { return s.Served })
	m.Count("late_admissions_total", "Calls admitted at their deadline by an estimate; their tokens are taken later.", func(s *tableState) int64 { return s.LateAdmitted })
	m.Count("late_denials_total", "Calls denied at their deadline by an estimate.", func(s *tableState) int64 { return s.LateDenied })
	m.Gauge("owed", "Requests still to be written: refunds, and tokens of late calls.", func(s *tableState) float64 { return float64(s.Owed) })
	for cause, lost := range map[string]func(*tableState) int64{
		"lease":   func(s *tableState) int64 { return s.LostLease },
		"unknown": func(s *tableState) int64 { return s.LostUnknown },
		"copy":    func(s *tableState) int64 { return s.LostTwice },
		"owed":    func(s *tableState) int64 { return s.LostOwed },
		"room":    func(s *tableState) int64 { return s.LostRoom },
	} {
		m.countBy("lost_tokens_total", lostHelp, "cause", cause, func(s *tableState) float64 { return float64(lost(s)) / limiter.Milli })
	}
	for cause, lost := range map[string]func(*tableState) int64{
		"stop": func(s *tableState) int64 { return s.UsageLostStop }, "outage": func(s *tableState) int64 { return s.UsageLostOutage },
		"reply": func(s *tableState) int64 { return s.UsageLostReply }, "deleted": func(s *tableState) int64 { return s.UsageLostDeleted },
	} {
		m.countBy("lost_usage_tokens_total", "Tokens not counted as usage, or with the cause `reply` perhaps not.", "cause", cause, func(s *tableState) float64 { return float64(lost(s)) / limiter.Milli })
	}
	m.Count("splits_total", "Buckets or shards split in two, for their writes.", func(s *tableState) int64 { return s.Splits })
	m.Count("merges_total", "Pairs of shards merged when quiet.", func(s *tableState) int64 { return s.Merges })
	m.Count("halts_total", "Stops of refills by an untrusted clock.", func(s *tableState) int64 { return s.Halts })
	m.Count("outages_total", "Outages of "+of.name+".", func(s *tableState) int64 { return s.Outages })
	m.Count("wrong_replies_total", "Impossible replies, such as one to another call. Each counts as none.", func(s *tableState) int64 { return s.Wrong })
	if of.forgets {
		m.Gauge("waiting_messages", "Messages that wait, as "+of.name+" has as many as it answers in time.", func(s *tableState) float64 { return float64(s.Waiting) })
		m.Count("histories_total", "Times that "+of.name+" came back, perhaps without its last writes.", func(s *tableState) int64 { return s.Histories })
		m.Count("healed_buckets_total", "Buckets then brought up to the memory of this process.", func(s *tableState) int64 { return s.Healed })
		m.Count("unreplicated_writes_total", "Writes that no replica had in 50 ms, with durability replica.", func(s *tableState) int64 { return s.Unreplicated })
	}
	m.Gauge("unavailable", "1 from the begin of an outage to the first answer.", func(s *tableState) float64 { return truth(s.Open) })
	m.Gauge("lanes", "Buckets whose state is in memory.", func(s *tableState) float64 { return float64(s.Lanes) })
	m.Gauge("clock_offset_seconds", "Correction of this machine's clock.", func(s *tableState) float64 { return s.clock.Offset.Seconds() })
	m.Count("clock_far_replies_total", "Replies whose time is further from this machine's clock than "+of.far+".", func(s *tableState) int64 { return s.clock.Far })
	m.Gauge("clock_uncertainty_seconds", "Greatest possible error of the corrected clock.", func(s *tableState) float64 { return s.clock.Uncertainty.Seconds() })
	m.Gauge("clock_trusted", "1 while refills go by the clock, 0 while it is untrusted and nothing is refilled.", func(s *tableState) float64 { return truth(s.clock.Trusted) })
	return m
}

// truth is 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
