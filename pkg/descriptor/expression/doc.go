// Package expression evaluates the conditions and variables of limits of a limitador file: expressions of CEL, the
// Common Expression Language (https://cel.dev), over the descriptors of a call.
//
// An expression sees descriptors, a list with a map of text to text for each descriptor, and limit, a map with the name
// and the id of the limit. Of an entry that a descriptor has twice, the last one counts.
package expression
