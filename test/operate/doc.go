// Package operate holds pages of commands against the program: docs/operate.md, and those in
// testdata. A page is Markdown. Its first YAML block is the configuration of the service that
// the commands meet. Each line of a console block that begins with "$ " is run by a shell, and
// the lines behind it are its output, on both streams. `go test ./test/operate -update` writes
// the output of this run into the pages.
package operate
