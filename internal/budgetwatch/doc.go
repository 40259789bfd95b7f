// Package budgetwatch has a program that runs only during its calls watch the budgets of a
// configuration, such as a function of AWS Lambda.
//
// The configuration is read when a [Watch] is opened, and again at the begin of a call that comes a
// minute later or more. One that has become bad changes nothing: the last good one stays in
// force. Events are sent at the end of the call that noted them. Nothing runs between two calls.
//
// The files rest on each other in this order: source.go, watch.go.
package budgetwatch
