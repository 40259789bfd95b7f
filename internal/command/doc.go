// Package command has the parts that all commands share: exit codes, output, the configuration's
// source, waiting for a store at the start, the version, and the end of all that a command opened.
package command
