package awscmd

import (
	"errors"
	"fmt"
	"math"
)

// mostWrites is how many writes a second replicas send for one bucket together: DynamoDB does about
// as many for one item.
const mostWrites = 1000

// Writes a second that replicas send for one busy bucket, each replica for itself. Below these
// rates every call is a write.
const (
	leasedWrites  = 1.5 // with leases, while there are tokens for the demand
	scarceWrites  = 3   // with leases, while the demand is over the limit
	groupedWrites = 280 // without; all replicas together stay below mostWrites
)

const (
	secondsInAMonth = 730 * 3600
	recordsOfAKey   = 3  // the entity, and its limits of the resource and of all; others are shared
	cacheSeconds    = 60 // cache.ttl
	pollSeconds     = 2  // between two polls for changes of limits
	flushSeconds    = 10 // between two writes of a snapshot by an aggregator
	leaseReads      = 2  // a second, of each replica of an item that it leases: others ask for the lease there
	reportUnits     = 4  // write units of the report of a replica, at most
	progressUnits   = 1  // write units of the report of an aggregator
	reportSeconds   = 15 // between two reports of a replica, or of an aggregator
	million         = 1e6
	bytesInAGB      = 1e9
	bucketBytes     = 1000 // of an item with its keys in the indexes
)

// costTraffic is the load of a fleet, as averages of a month.
type costTraffic struct {
	Calls      float64 `json:"calls_per_second"`
	Keys       float64 `json:"keys"`        // buckets in use within an hour
	HotKeys    float64 `json:"hot_keys"`    // of them, those with HotShare of the calls
	HotShare   float64 `json:"hot_share"`   // 0 to 1
	OverLimit  float64 `json:"over_limit"`  // share of the hot keys whose demand is over their limits, 0 to 1
	Levels     float64 `json:"levels"`      // buckets a call takes from: 1, and one for each parent
	Settled    float64 `json:"settled"`     // share of calls that reserve, and settle later, 0 to 1
	WriteUnits float64 `json:"write_units"` // of a write: 1 up to about 5 limits a bucket
	Replicas   float64 `json:"replicas"`
	Namespaces float64 `json:"namespaces"`
	Leases     bool    `json:"leases"`
	// UsageWindows is how many of hour, day and month an aggregator writes; 0 = there is none.
	UsageWindows float64 `json:"usage_windows"`
}

// Check reports the first number out of its range.
func (t costTraffic) Check() error {
	for _, n := range []struct {
		name             string
		value, low, high float64
	}{
		{"calls", t.Calls, 0, 1e9},
		{"keys", t.Keys, 1, 1e12},
		{"hot-keys", t.HotKeys, 0, t.Keys},
		{"hot-share", t.HotShare, 0, 1},
		{"over-limit", t.OverLimit, 0, 1},
		{"levels", t.Levels, 1, 8},
		{"settled", t.Settled, 0, 1},
		{"write-units", t.WriteUnits, 1, 400},
		{"replicas", t.Replicas, 1, 10_000},
		{"namespaces", t.Namespaces, 1, 10_000},
		{"usage-windows", t.UsageWindows, 0, 3},
	} {
		if math.IsNaN(n.value) || n.value < n.low || n.value > n.high {
			return fmt.Errorf("%s is %g; it must be %g to %g", n.name, n.value, n.low, n.high)
		}
	}
	if t.HotShare > 0 && t.HotKeys == 0 {
		return errors.New("hot-share needs hot-keys above 0")
	}
	return nil
}

// costPrices are those of DynamoDB on demand, in dollars.
type costPrices struct {
	Date     string  `json:"date"`     // of the prices
	Write    float64 `json:"write"`    // of a million write units
	Read     float64 `json:"read"`     // of a million read units
	Storage  float64 `json:"storage"`  // of a GB for a month
	Recovery float64 `json:"recovery"` // of point-in-time recovery, for a GB and a month; 0 = off
}

// knownPrices returns prices of us-east-1, as published by third parties at their date. Prices of a
// region and of a day are on AWS's own page.
func knownPrices() costPrices {
	return costPrices{Date: "2026-11-01", Write: 0.625, Read: 0.125, Storage: 0.25}
}

// costEstimate is a bill.
type costEstimate struct {
	Writes          float64 `json:"writes_per_second"`
	WritesPerCall   float64 `json:"writes_per_call"`
	HottestItem     float64 `json:"hottest_item_writes_per_second"` // DynamoDB takes about 1,000; the store splits before
	UsageWrites     float64 `json:"usage_writes_per_second"`        // of the aggregator, at most
	Reads           float64 `json:"read_units_per_second"`          // at most
	ReportUnits     float64 `json:"report_units_per_second"`        // of what replicas, and an aggregator, tell of themselves, at most
	Bytes           float64 `json:"bytes"`
	WriteDollars    float64 `json:"write_dollars"`
	UsageDollars    float64 `json:"usage_dollars"`
	ReadDollars     float64 `json:"read_dollars"`
	ReportDollars   float64 `json:"report_dollars"`
	StorageDollars  float64 `json:"storage_dollars"`
	Dollars         float64 `json:"dollars_per_month"`
	OneWriteDollars float64 `json:"dollars_per_month_one_write"` // of a limiter that writes once for every bucket of a call
}

// estimateCost estimates the bill of a traffic.
func estimateCost(t costTraffic, p costPrices) costEstimate {
	writes, hottest := t.writes(t.perReplica())
	e := costEstimate{Writes: writes, UsageWrites: t.usageWrites(t.perReplica()), HottestItem: hottest, Reads: t.lookups() + t.leased(), Bytes: t.Keys * t.Levels * bucketBytes}
	if t.Calls > 0 {
		e.WritesPerCall = e.Writes / t.Calls
	}
	e.WriteDollars = t.dollars(writes, p)
	e.ReadDollars = readDollars(e.Reads, p)
	e.StorageDollars = e.Bytes / bytesInAGB * (p.Storage + p.Recovery)
	e.UsageDollars = e.UsageWrites * secondsInAMonth / million * p.Write
	e.ReportUnits = t.Replicas * reportUnits / reportSeconds
	if t.UsageWindows > 0 {
		e.ReportUnits += progressUnits / float64(reportSeconds)
	}
	e.ReportDollars = e.ReportUnits * secondsInAMonth / million * p.Write
	other := e.StorageDollars + e.UsageDollars + e.ReportDollars
	e.Dollars = e.WriteDollars + e.ReadDollars + other
	e.OneWriteDollars = t.dollars(t.Calls*t.Levels+t.settlements(), p) + readDollars(t.lookups(), p) + other
	return e
}

func (t costTraffic) perReplica() float64 {
	if t.Leases {
		return leasedWrites + t.OverLimit*(scarceWrites-leasedWrites)
	}
	return groupedWrites
}

func (t costTraffic) dollars(writes float64, p costPrices) float64 {
	return writes * t.WriteUnits * secondsInAMonth / million * p.Write
}

// settlements are the marks and the second writes of calls that settle.
func (t costTraffic) settlements() float64 { return t.Calls * t.Settled * (1 + t.Levels) }

// writes returns the writes a second, and those of the busiest bucket, where a replica sends at
// most that many for one.
func (t costTraffic) writes(perReplica float64) (all, hottest float64) {
	group := func(calls, keys float64) {
		if keys == 0 || calls == 0 {
			return
		}
		one := min(calls/keys, perReplica*t.Replicas, mostWrites)
		all += one * keys * t.Levels
		hottest = max(hottest, one)
	}
	group(t.Calls*t.HotShare, t.HotKeys)
	group(t.Calls*(1-t.HotShare), t.Keys-t.HotKeys)
	return all + t.settlements(), hottest
}

// usageWrites returns the writes of an aggregator a second: each flush writes the snapshots of the buckets
// that were written since the last one. It is an upper bound, since variants of a bucket have one snapshot.
func (t costTraffic) usageWrites(perReplica float64) (all float64) {
	group := func(calls, keys float64) {
		if keys > 0 {
			all += keys * min(calls/keys, perReplica*t.Replicas, 1.0/flushSeconds) * t.Levels * t.UsageWindows
		}
	}
	group(t.Calls*t.HotShare, t.HotKeys)
	group(t.Calls*(1-t.HotShare), t.Keys-t.HotKeys)
	return all
}

func readDollars(units float64, p costPrices) float64 {
	return units * secondsInAMonth / million * p.Read
}

// leased returns the read units a second of the items of leases. A bucket is leased where that saves
// writes. It is an upper bound, since writes of a lease show the item, too.
func (t costTraffic) leased() (units float64) {
	if !t.Leases {
		return 0
	}
	group := func(calls, keys float64) {
		if keys > 0 && calls/keys > leasedWrites*t.Replicas {
			units += leaseReads * t.Replicas * keys * t.Levels
		}
	}
	group(t.Calls*t.HotShare, t.HotKeys)
	group(t.Calls*(1-t.HotShare), t.Keys-t.HotKeys)
	return units
}

// lookups returns the read units a second of polls for changes, and of records of keys that the
// caches do not have. It is an upper bound.
func (t costTraffic) lookups() float64 {
	polls := t.Replicas * (t.Namespaces + 1) / pollSeconds
	misses := func(calls, keys float64) float64 { return min(calls, keys*t.Replicas/cacheSeconds) }
	missed := misses(t.Calls*t.HotShare, t.HotKeys) + misses(t.Calls*(1-t.HotShare), t.Keys-t.HotKeys)
	return polls + missed*recordsOfAKey*t.Levels
}
