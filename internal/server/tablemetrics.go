package server

import (
	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const lostHelp = "Tokens that no admitted request has, by cause: a lease that ended before it was returned, a take with an unknown outcome, a late copy of a take, a pending charge that was never applied, a refund to a shard without room."

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
	m.Count("resent_writes_total", "Writes of buckets that were sent again, after a throttle or a lost reply.", func(s *tableState) int64 { return s.Resent })
	m.Count("reads_total", "Reads of buckets.", func(s *tableState) int64 { return s.Reads })
	m.Gauge("leases", "Token leases that this process holds.", func(s *tableState) float64 { return float64(s.Leases) })
	m.Count("lease_grants_total", "Token leases granted to this process.", func(s *tableState) int64 { return s.Granted })
	m.Count("lease_renewals_total", "Token leases that were renewed before they ran out.", func(s *tableState) int64 { return s.Renewed })
	m.Count("lease_returns_total", "Token leases released with tokens left.", func(s *tableState) int64 { return s.Returned })
	m.Count("lease_reaps_total", "Token leases of processes that ended without releasing them, revoked by this one.", func(s *tableState) int64 { return s.Reaped })
	m.Count("lease_decisions_total", "Decisions made from token leases, without a call.", func(s *tableState) int64 { return s.Served })
	m.Count("late_admissions_total", "Calls admitted at their deadline by an estimate, because "+of.name+" was slow; their tokens are taken later.", func(s *tableState) int64 { return s.LateAdmitted })
	m.Count("late_denials_total", "Calls denied at their deadline by an estimate, because "+of.name+" was slow.", func(s *tableState) int64 { return s.LateDenied })
	m.Gauge("owed", "Requests to be written after their callers left: refunds, and tokens of late calls.", func(s *tableState) float64 { return float64(s.Owed) })
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
		m.countBy("lost_usage_tokens_total", "Tokens consumed or refunded that are not counted as usage, or with the cause `reply` may not be.", "cause", cause, func(s *tableState) float64 { return float64(lost(s)) / limiter.Milli })
	}
	m.Count("splits_total", "Buckets or shards split in two, because one item cannot take their writes.", func(s *tableState) int64 { return s.Splits })
	m.Count("merges_total", "Pairs of shards merged after a quiet time.", func(s *tableState) int64 { return s.Merges })
	m.Count("halts_total", "Stops of refills, because the clock could not be trusted.", func(s *tableState) int64 { return s.Halts })
	m.Count("outages_total", "Times that "+of.name+" was marked unavailable.", func(s *tableState) int64 { return s.Outages })
	m.Count("wrong_replies_total", "Replies that "+of.name+" never gives: to another call, without a part, or of something on the way. Each counts as none.", func(s *tableState) int64 { return s.Wrong })
	if of.forgets {
		m.Gauge("waiting_messages", "Messages of buckets that wait, as "+of.name+" has as many as it answers in time.", func(s *tableState) float64 { return float64(s.Waiting) })
		m.Count("histories_total", "Times that "+of.name+" came back with another history: it may have lost its last writes.", func(s *tableState) int64 { return s.Histories })
		m.Count("healed_buckets_total", "Buckets that were then brought up to what this process remembers.", func(s *tableState) int64 { return s.Healed })
		m.Count("unreplicated_writes_total", "Writes that no replica of "+of.name+" had in 50 ms, with durability replica.", func(s *tableState) int64 { return s.Unreplicated })
	}
	m.Gauge("unavailable", "1 while "+of.name+" is marked unavailable: from the begin of an outage to the first answer.", func(s *tableState) float64 { return truth(s.Open) })
	m.Gauge("lanes", "Buckets whose state this process has in memory.", func(s *tableState) float64 { return float64(s.Lanes) })
	m.Gauge("clock_offset_seconds", "Correction of this machine's clock by the replies of "+of.name+".", func(s *tableState) float64 { return s.clock.Offset.Seconds() })
	m.Count("clock_far_replies_total", "Replies whose time is further from this machine's clock than "+of.far+".", func(s *tableState) int64 { return s.clock.Far })
	m.Gauge("clock_uncertainty_seconds", "Greatest possible error of the corrected clock.", func(s *tableState) float64 { return s.clock.Uncertainty.Seconds() })
	m.Gauge("clock_trusted", "1 while refills go by the clock, 0 while it may be wrong by too much and nothing is refilled.", func(s *tableState) float64 { return truth(s.clock.Trusted) })
	return m
}

// truth is 1 for true.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
