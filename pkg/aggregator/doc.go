// Package aggregator turns the change stream of a table into usage by hour, day and month.
//
//   - A [Record] is one write of a bucket's item, with the counters before and after it. The
//     difference is the consumption of the write. Counters of an item that is created begin at 0,
//     so the shards of a bucket add up: a shard that is split off brings no consumption with
//     it, and one that is absorbed leaves its counters behind.
//   - A [Batch] sums records up by snapshot: entity, resource and window. A flush makes one
//     write for each snapshot. Every write carries the position in the stream, and a snapshot
//     refuses records that it has: repeated records count once.
//   - [Lines] are audit events that expire, or will. A flush puts them into an [Archive], in objects
//     whose names have the place in the stream: a repeated batch makes the same objects.
//   - A [Poller] reads the shards of a stream, parents before children, and saves its position
//     when the work is done. A lease with a fencing number has one process work on a shard of
//     the stream, and another one take over.
//   - [Progress] is how far an aggregator is. It reports that to the replicas of the service, which
//     show it to operators.
//
// The package does not depend on AWS: [Source], [Snapshots] and [Leases] are the parts of
// a database that it needs. Package dynamo has those of DynamoDB. Package valkey has a stream of
// audit events alone, since a server counts usage by itself. The command aggregate has an archive
// in S3, and calls of AWS Lambda in place of a poller.
// Consumption is booked to the time of its decision, if the item has it, else to that of
// the write.
//
// A file uses only files of the lines above it, and of its own line:
//
//	record, snapshots, letters, part, batch, archive, retention  records, and what becomes of them
//	thresholds, comparison, splits                               usage compared with budgets, ends of splits
//	tree, source, balance, holding                               shards of the stream
//	health, stats, progress, config, poller                      the poller
//	alive, report, reporting, worker, round, follow              its work
package aggregator
