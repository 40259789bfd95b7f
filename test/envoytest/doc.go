// Package envoytest starts the programs that the end-to-end tests put together: a
// real Envoy with one of the files of examples/envoy, and the ratelimit program as
// its users start it. Every address is free and local. Everything is stopped with the
// test that started it, and the output of the programs is shown when it fails.
//
// A machine without Envoy fails these tests, unless they run with -short. `make
// test` installs it; the environment variable RATELIMIT_ENVOY names another one.
package envoytest
