// Package descriptor turns the descriptors of a call into what is to be taken
// from which buckets.
//
// Rules are compiled once ([Compile]) and never change; a reload compiles new
// ones. For each descriptor the first rule that matches it, in the order of the
// file, says what it consumes; [Rules.Plan] makes of a whole call one
// limiter.Request. The package knows nothing of protocols: descriptors are plain
// values, and any bytes are legal in them.
//
// # Matching
//
// A rule names the keys that a descriptor must have, all of them and no others
// (unless the rule is open), in any order, and a pattern for each value: an exact
// text, a text with '*' for any run of bytes, a regular expression (RE2, anchored
// at both ends), or a list of CIDR blocks. A key may be optional. When a
// descriptor has a key twice, one of the values must match. Finding the rule does
// not take longer with more rules, for exact values, '*' and prefixes.
//
// # Names
//
// Entities, resources and parents are templates: text with {key} for the value
// of a descriptor's entry, or of a named group of a regular expression.
// Templates are one-to-one: in a template with more than one part, '%', '/' and
// the byte that ends a placeholder are percent-escaped in the values, so that no
// value can pose as another's name.
package descriptor
