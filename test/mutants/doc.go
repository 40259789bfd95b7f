// Package mutants holds the tests of pkg/dynamo against faults: it takes one rule of
// the store away at a time, and requires that a named test fails.
//
//	make mutants
package mutants
