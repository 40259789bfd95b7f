// Package reload tests `ratelimit serve` as its configuration files are changed under it:
// truncated, written in parts, moved away, swapped, and replaced by something that is no file.
package reload
