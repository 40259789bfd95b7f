package awscmd

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// The needs of a Valkey or Redis server, as measured: docs/valkey.md and docs/benchmarks.md.
const (
	messageSeconds     = 28e-6 // of the server's processor, for a message about a quiet bucket
	serverBucketBytes  = 2500  // a bucket with its entity and its indexes
	serverUsageBytes   = 2100  // usage of a bucket in one window
	serverUsageWindows = 2*24 + 35 + 13
	busyServer         = 0.7 // share of the processor above which calls queue
)

// serverReport is the output of cost for a Valkey or Redis server.
type serverReport struct {
	Traffic costTraffic    `json:"traffic"`
	Server  serverEstimate `json:"server"`
}

// serverEstimate is the need of a server.
type serverEstimate struct {
	Messages        float64 `json:"messages_per_second"`
	MessagesPerCall float64 `json:"messages_per_call"`
	Processor       float64 `json:"processor"`    // share of the one that its scripts run on
	BucketBytes     float64 `json:"bucket_bytes"` // of buckets with their entities and indexes
	UsageBytes      float64 `json:"usage_bytes"`  // at most: each key is used in each hour
}

// estimateServer estimates the need of a traffic.
func estimateServer(t costTraffic, usage bool) serverEstimate {
	e := serverEstimate{Messages: t.messages(), BucketBytes: t.Keys * t.Levels * serverBucketBytes}
	e.Processor = e.Messages * messageSeconds
	if t.Calls > 0 {
		e.MessagesPerCall = e.Messages / t.Calls
	}
	if usage {
		e.UsageBytes = t.Keys * t.Levels * serverUsageBytes * serverUsageWindows
	}
	return e
}

// messages returns those a second. Without leases it is an upper bound, since calls of one bucket share them.
func (t costTraffic) messages() (all float64) {
	group := func(calls, keys float64) {
		if t.Leases {
			calls = min(calls, keys*t.perReplica()*t.Replicas)
		}
		all += calls * t.Levels
	}
	group(t.Calls*t.HotShare, t.HotKeys)
	group(t.Calls*(1-t.HotShare), t.Keys-t.HotKeys)
	return all + t.settlements()
}

func printServer(out io.Writer, e serverEstimate) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	tooMuch := ""
	if e.Processor > busyServer {
		tooMuch = ", too much for one server: give some domains a fleet and a server of their own"
	}
	usage := "none, as it is not counted"
	if e.UsageBytes > 0 {
		usage = fmt.Sprintf("%.2f GB at most, after 400 days, if each key is used in each hour", e.UsageBytes/bytesInAGB)
	}
	_, err := fmt.Fprintf(w, `messages a second	%.1f (%.4f a call)
processor	%.2f of the one that a server uses%s
buckets	%.2f GB
usage	%s
memory	%.2f GB, and up to as much again while the server writes its file
`, e.Messages, e.MessagesPerCall, e.Processor, tooMuch, e.BucketBytes/bytesInAGB, usage, (e.BucketBytes+e.UsageBytes)/bytesInAGB)
	if err != nil {
		return err
	}
	return w.Flush()
}
