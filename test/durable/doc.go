// Package durable tests `ratelimit serve --data` as a machine treats it. The program is
// killed at any moment, stopped, and started twice. Its directory cannot be written,
// its file is damaged, its disk is full. The tests see the outside of it: flags, files,
// the wire, metrics and the log.
//
// Over all runs of a process together, no bucket gives more than its capacity and its
// refill, in any window of time. No bucket loses more than the process reports.
package durable
