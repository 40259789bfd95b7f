// Package server is the process that answers calls: its store, its listeners and their guards,
// reload, drain, metrics, and alerts of budgets. [NewCommand] makes the command serve, and [New] a
// [Service] without listeners.
//
// # Files
//
// A file uses only files of the lines above it, and of its own line:
//
//	memlimit, memory, resident                                                      the limit of memory, and its use
//	statsmetrics, metrics, durablemetrics, reservation, tablemetrics, outage        metrics of the parts
//	signer, tlspair, tls                                                            certificates
//	guards, reflection, grpclistener, httplistener                                  listeners
//	metricslistener, debuglistener                                                  listeners for metrics and profiles
//	adminsocket_path, adminsocket, adminsocket_rundir                               socket of administration
//	alert_body, alert_sampled, alert_webhook, alerts, budgets                       alerts of budgets
//	tracing_variables, tracing_environment, tracing_export, tracing_store, tracing  spans
//	datawatch, valkey, store                                                        the store that the configuration names
//	xdsrules, xdsclient                                                             client of a control plane
//	undefinedlimits, activity, statusfleet, mirror                                  a replica as it shows itself; mirrored calls
//	service, replica, adminlistener, status, statsd, apply, watch, controlplane     the service, its reload, its rules
//	sample, greeting, demotraffic, adminopen                                        the first steps of a new user
//	run, build, serve, limitador                                                    start and end; the commands
//
// # Rules of a control plane
//
// A control plane such as Envoy Gateway may hand out the rules, over ADS. The files that begin with xds are the
// client of its stream, and controlplane.go puts the rules in force.
//
// # Tracing
//
// [Tracing] sends spans of calls to an OpenTelemetry collector, as the standard
// variables OTEL_* of the environment say.
//
// It is off unless OTEL_TRACES_EXPORTER is otlp, or the environment has an endpoint of OTLP;
// then a service has no part of it. It speaks OTLP over gRPC or HTTP. A span of a call is a child of
// that of the gateway, and has the domain and the answer. The calls of a store that is a
// table are its children.
//
// # Socket of administration
//
// The files that begin with adminsocket open and find the Unix socket of administration. The mode of
// its file, 0600, lets a caller in: the user of the service, and root.
//
// A service with a data directory has a socket there. Each service has one in the run
// directory, which commands search: $RATELIMIT_RUN_DIR alone where it is set; else
// $XDG_RUNTIME_DIR/ratelimit, /run/ratelimit, or ratelimit-UID below the directory for
// temporary files. A configuration that names the socket has that one alone.
//
// # Alerts
//
// [Alerts] reports events of budgets to operators: in the log, and by calls of a
// webhook.
//
// A [Webhook] has two queues of bounded length, and sends several events at once. Clients can invent the
// entities of shared events, see [limiter.BudgetEvent]: these have a queue of their own, at most half of the
// senders, and a bounded number of lines in the log. A call is signed with
// HMAC-SHA256 over a timestamp and the body. It is made again with growing pauses while the
// receiver fails. An event that finds its queue full, that the receiver refuses, or that no call
// has delivered in time is dropped: that is counted, and logged. A program that is frozen between
// its calls, such as a function of AWS Lambda, has no such senders: it sends with [Webhook.Flush].
package server
