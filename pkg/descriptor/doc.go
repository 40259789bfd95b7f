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
// at both ends, in which '.' is any byte), or a list of CIDR blocks, which an
// address or a smaller block matches. A key may be optional. When a descriptor
// has a key twice, one of the values must match (the first 64 are looked at), and
// the first that does fills placeholders.
//
// Finding the rule does not take longer with more rules, for exact values, '*'
// and prefixes: it depends on how many different sets of keys a descriptor fits,
// and how many different lengths of prefixes they have. Rules that differ only in
// regular expressions, blocks, text after a '*', or optional keys of open rules
// are asked one by one.
//
// # Names
//
// Entities, resources and parents are templates: text with {key} for the value
// of a descriptor's entry, or of a named group of a regular expression.
// Templates are one-to-one: in a template with more than one part, '%', '/' and
// the byte that ends a placeholder are percent-escaped in the values, so that no
// value can pose as another's name. A template that is one placeholder gives the
// value as it is: "{model}" may well be "key/1", so names should carry their kind.
//
// # Amounts
//
// A descriptor's number of hits is its own, else the call's, which is at least 1.
// An explicit 0 is a look at every limit of the rule. A refund gives back what
// stands for hits, and no constants. An explicit number above 0 makes a charge of
// all that an overdraw rule consumes.
//
// # A descriptor's own limit
//
// [Descriptor].Limit replaces one limit that the rule consumes: the one that the
// rule names, else the only one, else the only one that is consumed by hits; where
// that leaves none it is ignored. It has buckets of its own, for each distinct
// value. A limit of 0 requests denies, and has nothing to charge or give back.
//
// # envoyproxy/ratelimit
//
// A domain may have the descriptors of an envoyproxy/ratelimit file instead of
// rules ([DomainSpec].Tree). They are walked as that service does: entries in
// order, an exact value before the first pattern before a bare key, no way back,
// and a limit counts only at the last entry. Each limit is a token bucket that
// holds its requests_per_unit and refills them over the unit, so that more than
// the rest is denied and not taken. An explicit number above 0 can be a charge
// after the response, see [Overdraw]: then it is taken into debt.
package descriptor
