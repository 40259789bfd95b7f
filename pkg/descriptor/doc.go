// Package descriptor turns the descriptors of a call into takes from buckets.
//
// [Compile] makes the rules once, and they never change; a reload compiles new ones. For each
// descriptor the first rule that matches it, in the order of the file, says how much to consume of which limit.
// [Rules.Plan] makes one limiter.Request of a whole call. The package does not depend on a
// protocol: descriptors are plain values, and may have any bytes.
//
// # Files
//
// A file uses only files of the lines above it, and of its own line:
//
//	descriptor, view, override, body, spec                      descriptors of a call; rules as they are written
//	expression, pattern, prefix, template, resources            parts of a rule
//	rules, index, buckets, plan, asked, calllimits, tree        compiled rules; the plan of a call
//	compiler, compile_take, resourcenames, variants, ownlimits  the compilation of a rule
//	compile, compile_calllimits, compile_tree                   the compilation of all
//	match, search                                               the rule of a descriptor
//	planner, tree_plan, calllimits_plan                         the takes of a call
//	example, mismatch, nearest, explain, warnings               why a rule is found, and why another one is not
//
// # Matching
//
// A rule names the keys that a descriptor must have, in any order: all of them, and no others
// unless the rule is open. It has a pattern for the value of each key:
// - an exact text.
// - a text with '*' for any run of bytes.
// - a regular expression (RE2, anchored at both ends, in which '.' is any byte).
// - a list of CIDR blocks, for an address in one of them or a smaller block.
//
// A key may be optional. If a descriptor has a key several times, one of its first 64 values must
// match, and the first value that does fills placeholders.
//
// For exact values, '*' and prefixes, the time to find a rule does not grow with the number of
// rules. It depends on how many different sets of keys a descriptor fits, and on how many different
// lengths their prefixes have. Rules that differ only in regular expressions, blocks, text after a
// '*', or optional keys of open rules are compared one by one.
//
// # Names
//
// Entities, resources and parents are templates: text in which {key} stands for the value of a
// descriptor's entry, or of a named group of a regular expression. Different values give different
// names. In a template with more than one part, '%', '/' and the byte that ends a placeholder are
// percent-escaped in the values. So no value can imitate another's name. A template that is one
// placeholder gives the value itself. Then "{model}" can be "key/1", so names should begin with
// their kind.
//
// # Amounts
//
// A descriptor's number of hits is its own, else the call's, which is at least 1. An explicit 0
// peeks at every limit of the rule. A refund gives back the amounts by hits, and no constants. An
// explicit number above 0 charges all that an overdraw rule consumes.
//
// # A descriptor's own limit
//
// [Descriptor].Limit replaces one limit that the rule consumes: the one that the rule names, else
// the only one, else the only one consumed by hits. If there is none of these, it is ignored. Each
// distinct limit has buckets of its own. A limit of 0 requests denies, and has nothing to charge or
// refund.
//
// # envoyproxy/ratelimit
//
// A domain may have the descriptors of an envoyproxy/ratelimit file instead of rules
// ([DomainSpec].Tree). They are followed as in that service: entries in order, an exact value
// before the first pattern before a bare key, without backtracking. A limit counts only at the last
// entry. Each limit is a token bucket that holds its requests_per_unit and refills them over the
// unit. A request for more than the tokens left is denied and takes none. An explicit number above
// 0 can be a charge after the response, see [Overdraw]; then it is taken into debt.
//
// # limitador
//
// A domain may have the limits of a limitador file instead of rules ([DomainSpec].Limits). A limit counts where all of
// its conditions hold. Each combination of its variables has a bucket. Both are expressions of CEL over all
// descriptors of the call.
package descriptor
