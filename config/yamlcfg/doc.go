// Package yamlcfg reads YAML files strictly: unknown and repeated keys, wrong types and numbers out
// of range are mistakes. A [Report] collects all of them. Each is a [Problem] with a file, a line, a
// path and a way to correct it. No problem repeats text of a [Confidential] part of a file.
//
// A [Schema] says which values may stand at a place, and sets variables. [Documents] reads files
// without one.
//
// A file uses only files of the lines above it, and of its own line:
//
//	problem         reports
//	node            values of a file
//	schema          objects, lists, shapes
//	scalar, tokens  text, words, numbers, amounts of tokens
//	decode          whole files
package yamlcfg
