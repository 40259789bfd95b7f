// Package durable tests `ratelimit serve --data` as a machine treats it: killed at any
// moment, stopped, started twice, with a directory that cannot be written, a file that
// is damaged and a disk that is full. It sees what a user sees: flags, files, the wire,
// metrics and the log.
//
// What it wants of all the lives of a process together: no bucket gives more than its
// capacity and its refill, in any window of time, and none loses more than what the
// process says.
package durable
