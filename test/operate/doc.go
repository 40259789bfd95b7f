// Package operate holds pages of commands against the program: pages of docs/, and those in
// testdata. A page is Markdown. Its first YAML block is the configuration of the service that
// the commands meet. A block after a line that ends in its name in backquotes and a colon is
// a file beside it. Each line of a console block that begins with "$ " is run by a shell, and
// the lines behind it are its output, on both streams. A comment "<!-- $ STEP -->" is a step
// that readers make by hand, such as the start of a program. The tour and the operations guide
// meet three replicas on one table. `go test ./test/operate -update` writes the output of this
// run into the pages.
package operate
