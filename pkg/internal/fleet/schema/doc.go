// Package schema is the layout of a fleet's table, on DynamoDB and on Valkey: the keys and the
// attributes of every record, and their codecs. It is pure: no function of it calls DynamoDB, reads a clock or
// holds a lock.
//
//   - [Key] is the primary key of an item. One function for each kind of record makes it;
//     two records never have the same key. [EscapeName] is how a name stands in a key.
//   - A function {Kind}Item makes the item of a record, Parse{Kind} reads it. [Reader] reads
//     attributes and keeps the first fault: an item that is not as this program writes it is
//     a [CorruptError], and is never taken for an absent one.
//   - [ItemWrite] is a conditional write of one item, as a value.
//   - [Shard] is the place of an item in the tree of its bucket's shards.
//   - Query{Pattern} makes a query of the table or of an index.
//
// Attribute names of one to three letters keep items within one write unit. Each has a
// constant. The package comment of pkg/dynamo lists them all.
package schema
