// Package alert reports events of budgets to operators: in the log, and by calls of a
// webhook.
//
// A [Webhook] has two queues of bounded length, and sends several events at once. Clients can invent the
// entities of shared events, see [budget.Event]: these have a queue of their own, at most half of the
// senders, and a bounded number of lines in the log. A call is signed with
// HMAC-SHA256 over a timestamp and the body. It is made again with growing pauses while the
// receiver fails. An event that finds its queue full, that the receiver refuses, or that no call
// has delivered in time is dropped: that is counted, and logged. A program that is frozen between
// its calls, such as a function of AWS Lambda, has no such senders: it sends with [Webhook.Flush].
//
// The files rest on each other in this order: body.go, sampled.go, webhook.go, alerts.go.
package alert
