// Package console holds the pages of the admin listener in a real Chromium, without a window, against the
// program on each kind of store. The browser and axe-core are in .cache, where `make tools` puts them.
// `make pictures` takes the pictures of docs/console.md again.
package console
