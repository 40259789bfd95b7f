// Package console holds the page of the admin listener in a real Chromium, without a window,
// against the program. The browser is .cache/chromium/chromium, which `make tools` installs.
// `go test ./... -update` in this directory takes the picture of docs/console.md again.
package console
