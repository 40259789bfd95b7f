// Package awscmd has the commands for AWS: the stack of a fleet's table and its cost, the aggregator
// and its function for AWS Lambda, and the migration from zae-limiter.
//
// # Budgets in a function
//
// A [BudgetWatch] has a program that runs only during its calls watch the budgets of a
// configuration, such as a function of AWS Lambda.
//
// The configuration is read when a [BudgetWatch] is opened, and again at the begin of a call that comes a
// minute later or more. One that has become bad changes nothing: the last good one stays in
// force. Events are sent at the end of the call that noted them. Nothing runs between two calls.
//
// # Cost
//
// The cost model estimates the bill of a fleet's table from its traffic. Counts of writes come
// from measurements in docs/scenarios.csv, which a test compares with the model. Prices are
// inputs. Of a Valkey or Redis server it estimates messages, processor and memory.
package awscmd
