// Package record is the layout of the records of a data file: entities and limits, audit events,
// and the parts that all records are made of. It knows no store and no file: it turns values into
// bytes, and bytes into values.
//
// A number is a varint, and a text has its length before it. A record begins with its version, and
// a parser reads all versions up to its own. It returns [ErrFormat] for any other bytes, and reads
// nothing beyond them. Names are any bytes of any length, so a key is at most [LongestKey] long, see [KeyOf].
package record
