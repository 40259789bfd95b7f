// Package config reads the configuration of the program: one YAML file, and the
// files with more domains that it includes.
//
// [Load] is strict. Whatever is wrong is reported in one go, as [Problems], each
// with file, line and path and what would be right: unknown and repeated keys,
// wrong types, numbers out of range, names that lead nowhere. A configuration
// that loads is complete and never changes; [Watch] delivers a new one when the
// files change, or why they cannot be used.
//
// The schema stands in schema_*.go, as values that decode and that can be walked;
// docs/configuration.md describes every key of it, and a test compares the two.
package config
