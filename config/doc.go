// Package config reads the configuration of the program: one YAML file, and the files with more
// domains that it includes.
//
// [Load] is strict: unknown and repeated keys, wrong types, numbers out of range, and names that
// lead nowhere are mistakes. It reports all mistakes at once, as [yamlcfg.Problems]. Each has a file, a
// line, a path and a way to correct it. A configuration that loads is complete and never changes.
// [Watch] delivers a new one when the files change, or the reason why they cannot be used.
//
// The schema is in schema_*.go: one table an object, which decodes the file and makes [JSONSchema].
// docs/configuration.md describes every key of it, and a test compares the two.
package config
