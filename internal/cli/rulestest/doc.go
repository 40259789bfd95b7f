// Package rulestest runs files of calls and expected answers against a configuration. Every
// case begins with full buckets at the same time, in memory. Time moves by the steps of the
// case alone, so a case of a month takes no longer than one of a second.
package rulestest
