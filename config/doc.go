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
// A file uses only files of the lines above it, and of its own line:
//
//	values, rate, quota                          values of keys, rates and quotas
//	read, write, include, links, settle, pem     files: read, written, named by others, linked to, complete
//	listener, admin, adminproxy, statsd, server  where the program listens, and its StatsD server
//	clienttls, store, valkey, mirror, xds        other services
//	headers, denial, envoyproxy                  answers, and settings of envoyproxy/ratelimit
//	reservation, webhook                         keys in files
//	limit, amount, take, rule                    limits and rules
//	tree, calllimit, domain                      domains, also in the forms of other programs
//	config, domains                              the configuration
//	file, levels, prices                         the root table, limits of levels, prices
//	warn, warn_level, warn_template, warn_unreached, room   warnings
//	echo, load                                   loading, without mistakes that follow from others
//	gone, watch                                  following, and domains that are missing
package config
