// Package cli has the commands of operators, and those that need no service, such as check, explain,
// test and convert. A command asks a running service over /v1, or opens the table itself.
package cli
