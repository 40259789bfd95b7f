//go:build !torture

package durable_test

// How often the program is killed.
const kills, ledgerKills = 200, 30
