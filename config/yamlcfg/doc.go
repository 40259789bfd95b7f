// Package yamlcfg reads YAML files strictly: unknown and repeated keys, wrong types and numbers out
// of range are mistakes. A [Report] collects all of them. Each is a [Problem] with a file, a line, a
// path and a way to correct it. No problem repeats text of a [Confidential] part of a file.
//
// A [Schema] says which values may stand at a place, and sets variables. [Documents] reads files
// without one.
//
// A file uses only those before it: problem.go (reports), node.go (values of a file), schema.go
// (objects, lists, shapes), scalar.go (text, words, numbers), decode.go (whole files).
package yamlcfg
