// Package catalog is the part of the DynamoDB store that is not about buckets: namespaces,
// entities, limits, their audit events, marks of settlements and secrets, and the table
// itself.
//
//   - [Catalog] implements limiter.Catalog. Every change of a namespace is one transaction
//     with its audit event; see there for the consistency of reads.
//   - A watcher in the catalog reads the counters of the namespaces in use every two seconds,
//     and tells the subscriber of the changes of other replicas.
//   - [Settlements] implements limiter.Settlements: one conditional put for each.
//   - [CreateTable] and [CheckTable] create and check the table and its indexes.
//
// The files have three layers. catalog.go, entities.go, change.go, admin.go and
// settlement.go rest on namespaces.go and watch.go. These rest on table.go, records.go,
// commit.go and register.go, which send throttled requests again.
package catalog
