// Package clockjump tests running programs whose wall clock is set. Their monotonic clock
// goes on, as after a step of NTP or a sleep of a virtual machine.
//
// The clock of the machine is not touched. The program is built with a time.Now that adds
// the seconds of a file. [go build -overlay] puts it in the place of the standard one. All
// other code is that of the program, and nothing of it reads the wall clock in another way.
//
// The build takes minutes where Go's cache does not have it: it compiles the standard
// library again.
//
// [go build -overlay]: https://pkg.go.dev/cmd/go#hdr-Compile_packages_and_dependencies
package clockjump
