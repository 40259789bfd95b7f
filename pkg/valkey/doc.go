// Package valkey is the store for a fleet on a Valkey or Redis server: the engine of pkg/dynamo on
// another server. Buckets, entities, limits and the marks of settlements are in one table there,
// shared by every replica.
//
// # Exact
//
// The store is as exact as on DynamoDB while the server keeps all that it has acknowledged. A server that
// comes back with an older state, or with none, is noticed by the next message to it. Then nothing
// that was planned before is applied, and no lease of before is served. Each bucket is brought up to
// the newest state that this process remembers, before its first take. Tokens that no living replica remembers can
// be given twice: at most those of the time that is lost, and the room of leases that began in it.
//
// A server that has lost the table is refused: stored limits are gone with it. [Config.Recreate] makes
// a new table instead.
//
// # The archive
//
// An [AuditStream] has the audit events of a table for an aggregator, which archives them before they expire.
//
// # Packages
//
// internal/items has the calls on items, and the history of the server. The rest is in
// pkg/internal/fleet, as for pkg/dynamo.
package valkey
