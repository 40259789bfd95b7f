// Package items keeps the items of a table on a Valkey or Redis server, and answers the calls of
// awsdb.Items on them. So the engine of a fleet runs there as it does on DynamoDB.
//
// # Items
//
// A table has a name. All of its keys begin with {name}, so that they are in one slot:
//
//	{name}:i:PK\0SK      an item: a hash of attributes, each a number, or a letter for its type and the value
//	{name}:p:PK          a sorted set of sort keys, of the partitions that are queried
//	{name}:g1:pk .. g4   a sorted set of an index: sort key \0 PK \0 SK, without the PK where it is the sort key
//	{name}:x             a sorted set of the items that expire, PK\0SK, by a time at which to look at them
//	{name}:tok:id        a transaction that was made, for 15 minutes
//	{name}:table         the marker of the table: version of the schema, id, time of creation
//	{name}:history       the history of the server, see below
//
// # Places
//
// In a cluster a table has 16 places of keys, each with a tag and a slot of its own in place of {name}, and each with all
// of the above. The slots are spread evenly. [schema.Home] says which place an item is in: a bucket with its usage, and
// all records of a namespace, are in one. Audit events and records of adjustments are where their transaction changes
// a bucket, or else the records. They are looked for in all places.
//
// A transaction of records and of a bucket is two batches: first that of the records, then that of the bucket with its
// event and its record. A process that ends between them has raised a counter, and changed nothing. Deletions in several
// places follow the batch whose condition they rest on. A later batch carries a time, after which its server refuses it.
//
// A link has one client for each server, so that the places of one server share a connection.
//
// # Writes
//
// One script applies a batch of conditional writes, all or none. It reads all items, checks all
// conditions, works out all results, and then writes. Numbers have up to 38 digits, and are added as
// decimal text. The script's reply has the server's time, which corrects the [awsdb.Clock].
//
// Takes, charges and refunds have a shorter part of the script to themselves, see plain.go.
//
// # Usage
//
// The use of a bucket is counted by the script that takes, in the snapshot of the hour alone. Those of its day and
// its month are made with it, and name it while it is open. The sweep adds an hour to them one to two hours
// after its end, and takes their names of it away. A reader of a day or a month adds the open hours that it names. A write that
// comes for an hour that is no longer open counts in all three.
//
// # History
//
// Replication is asynchronous. A server can come back with an older state, or with none: after a
// failover, or a restart. Scripts are neither replicated nor saved, so such a server does not know
// the script of this package. A process that learns so asks for the id of the server's history,
// master_replid, which is another one then. Each place has its history. A [Session] belongs to one history of each. Its calls
// are refused once there is another one of any, and are certainly not applied. The text of the script begins with the
// history that it is loaded for, and the script compares it with the key of the history. So a process
// cannot run the script of another one's history, and neither can a server that comes back with old
// scripts. The key of the history is read with each read. A reply of another history is no answer. A history has the id of its table, so that a table that was lost and made again is another
// one. Its number is above those that any process of the table has seen.
//
// The script is sent by its hash alone. A retry of the client, or one with the script's text, would
// apply a write twice, or pass the check.
package items
