//go:build torture

package durable_test

// How often the program is killed in `make torture`.
const kills, ledgerKills = 2000, 300
