// Package bounds tests `ratelimit serve` against strangers that reach its listeners:
// connections that ask and do not go on, messages and keys without end, too few file
// descriptors. It speaks raw HTTP/2 where no client in order would do the same.
//
// Beside any stranger the others must get exact decisions, and the
// memory of the process stays within its limit.
package bounds
