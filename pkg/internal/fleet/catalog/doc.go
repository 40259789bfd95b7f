// Package catalog is the part of the store of a fleet that is not about buckets: namespaces,
// entities, limits, their audit events, budgets, marks of settlements and secrets, and the
// table itself.
//
//   - [Catalog] implements limiter.Catalog. Every change of a namespace is one transaction
//     with its audit event; see there for the consistency of reads.
//   - A watcher in the catalog reads the counters of the namespaces in use every two seconds,
//     and tells the subscriber of the changes of other replicas.
//   - [Settlements] implements limiter.Settlements: one conditional put for each.
//   - [BudgetNotes] reads stored budgets and names of namespaces, and notes thresholds in snapshots of usage.
//     It is the table's part of an aggregator.Comparison.
//   - [BudgetWatch] compares usage with budgets where the store counts usage by itself, so that there is no
//     aggregator. Each process compares the snapshots that its own writes have changed. One process at a
//     time compares those of the last hour once more, for processes that were killed.
//   - [CreateTable] and [CheckTable] create and check the table and its indexes.
//
// A file uses only files of the lines above it, and of its own line:
//
//	table, commit, records, register                       calls, which send throttled requests again
//	version, create                                        the table itself
//	namespaces, watch, generation, use                     the namespaces in use, and the changes of others
//	catalog, list, namespacelist, auditlist, usage         records, and the queries of administration
//	change, entities, edit                                 changes of records
//	settlement, secret, buckets, purge, orphans            the rest of the store
//	reports, progress, streamleases, auditahead            reports of replicas, and an aggregator's part of the table
//	auditstream                                            audit events as its stream
//	budgetnotes, budgetstoredcache                         budgets as the table has them, and marks of told thresholds
//	budgetstored, budgetwatch, budgetcompare, budgetround  usage in the table compared with budgets
package catalog
