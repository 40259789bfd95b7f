// Package cli has the commands of operators, and those that need no service: check, explain, test,
// capacity and bench. A command asks a running service over /v1, or opens the table itself.
package cli
