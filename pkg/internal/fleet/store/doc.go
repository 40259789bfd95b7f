// Package store puts the parts of the store of a fleet together: [Store] is the catalog, the
// settlements and the engine on one table. It speaks to the table by awsdb.Items alone, so that
// pkg/dynamo and pkg/valkey share it.
package store
