// Package bounds tests `ratelimit serve` as strangers treat it who reach its listeners:
// connections that ask and do not go on, messages and keys without end, too few file
// descriptors. It speaks raw HTTP/2 where no client in order would do the same.
//
// What it wants: whatever one stranger does, the others get exact decisions, and the
// memory of the process stays within its limit.
package bounds
