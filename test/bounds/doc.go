// Package bounds tests `ratelimit serve` against hostile clients that reach its
// listeners. They open connections and stall, send messages and keys without end, and
// exhaust file descriptors. The tests speak raw HTTP/2 where no proper client would
// do the same.
//
// Beside a hostile client the others must get exact decisions, and the memory of the
// process must stay within its limit.
package bounds
