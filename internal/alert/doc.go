// Package alert tells operators of events of budgets: in the log, and by calls of a webhook.
//
// A [Webhook] has a queue of bounded length, and one goroutine that sends. A call is signed with
// HMAC-SHA256 over a timestamp and the body. It is made again with growing pauses while the
// receiver fails. An event that finds the queue full, that the receiver refuses, or that no call
// has delivered in the end is dropped: that is counted, and logged. A program that is frozen between
// its calls, such as a function of AWS Lambda, has no such goroutine: it sends with [Webhook.Flush].
//
// The files rest on each other in this order: body.go, webhook.go, alerts.go.
package alert
