// Package config reads the configuration of the program: one YAML file, and the files with more
// domains that it includes.
//
// [Load] is strict: unknown and repeated keys, wrong types, numbers out of range, and names that
// lead nowhere are mistakes. It reports all mistakes at once, as [yamlcfg.Problems]. Each has a file, a
// line, a path and a way to correct it. A configuration that loads is complete and never changes.
// [Watch] delivers a new one when the files change, or the reason why they cannot be used.
//
// Each object of the file has one table of its keys, in the file of the object. The table decodes
// the file and makes [JSONSchema]. docs/configuration.md describes every key of it, and a test
// compares types, defaults, ranges and descriptions of the two.
//
// A file uses only files of the lines above it, and those before it in its own line:
//
//	values            values.go, rate.go
//	reading files     read.go (regular files), include.go (those that a configuration names),
//	                  links.go (the way to a file), settle.go (whether it is complete)
//	listeners         listener.go, admin.go, server.go
//	store, answers    store.go, headers.go
//	keys in files     reservation.go, webhook.go
//	limits            limit.go, levels.go (of the system, resources and entities)
//	rules             amount.go, take.go, rule.go, tree.go (of envoyproxy/ratelimit), domain.go
//	configuration     config.go, file.go (the root table)
//	warnings          warn_level.go (about limits), warn.go
//	loading           echo.go (mistakes that follow from others), load.go
//	following         gone.go (domains that are missing), watch.go
package config
