// Package limiter is the domain: limits, entities, requests, decisions, and the
// [Store] contract that keeps the buckets.
//
// A [Request] names amounts to take from buckets. [Limiter.Decide] resolves the limits of every
// [Entity] in the chain. It asks the [Store] to take all of the amounts or none, and fills in a
// [Decision]. A denial is a value, never an error; an error means that no decision could be made.
//
//	request ── chain ──► limits ──► deny cache ──► Store.Take ──► decision
//	           entity,   resolved    remote         all or
//	           parents   by level    stores only    nothing
//
// # Units
//
// Limits are in whole tokens. The amounts of a request, and every balance, are in millitokens (one
// token is 1000 millitokens, [Milli]), so that weights with three decimals are exact. Times are
// arguments; the package reads no clock.
//
// # As a library
//
// The package needs neither Envoy nor a configuration file. Give [New] a store, and requests with
// their own limits ([Take.Limits]) or limits set with [Limiter.SetStatic]. [Limiter.Acquire]
// returns a [Lease] for work whose cost is known only when it is done.
//
// # Files
//
// A file uses only files of the lines above it, and of its own line:
//
//	errors, hash, grow, page, zones, clocks, deadline, sampledlog  used by all parts
//	shadowname, shortname, nearname, principal, reason             names, and who makes a change for which reason
//	entity, hierarchy, kind, limit, calendar, inflight             values
//	policy, leasepolicy, usage, settlements, reports               policies, usage, settlements, reports of replicas
//	ref, namespace, switch, disabled, disabling, source            what records are about, and their switches
//	budget, budget_set, budget_threshold, budget_event             budgets
//	op, buckets, inflight_buckets, oncerecord                      buckets
//	record, audit, edit, catalog, control, store                   records, read and changed, and the store of it all
//	static, request, merge, dropped, scratch                       the question; the limits of all levels, by name
//	levelops, decision, asked, holding, status                     the answer, and its memory
//	config, cache, reads, denycache, shares                        the memory of a limiter
//	limiter, use, readthrough, resolve, unavailable                the limiter, and its steps
//	decide, book, lease, effective                                 its calls
//
// # Budgets
//
// The budget files detect when the usage of a calendar window reaches thresholds of a budget.
//
// A token bucket has no calendar: it refills all the time. A [Budget] is an amount of tokens
// of one limit for an hour, a day or a month of UTC. It is compared with the usage of that window,
// and admits or denies nothing. A [BudgetSet] finds the budget of an entity and a resource: the most
// specific one. At each of the [BudgetThresholds] there is one [BudgetEvent].
package limiter
