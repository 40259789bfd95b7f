// Package budgets compares the usage in a table with budgets, and marks told thresholds in the table.
//
//   - [Notes] reads stored budgets and names of namespaces, and notes thresholds in snapshots of usage.
//     It is the table's part of an aggregator.Comparison.
//   - [Watch] compares where the store counts usage by itself, so that there is no aggregator. Each
//     process compares the snapshots that its own writes have changed. One process at a time compares
//     those of the last hour once more, for processes that were killed.
package budgets
