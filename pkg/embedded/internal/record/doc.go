// Package record is the layout of the records of a data file: entities and limits, audit events,
// and the common parts of all records. It depends on no store and no file: it converts values to
// bytes and back.
//
// A number is a varint, and a text has its length before it. A record begins with its version, and
// a parser reads all versions up to its own. For other bytes it returns [ErrFormat], and it never
// reads beyond the record. Names are any bytes of any length, so a key is at most [LongestKey]
// long, see [KeyOf].
package record
