package main

import "github.com/spf13/cobra"

func newGet() *cobra.Command {
	return newVerb("get", "Show one stored record", `get shows an entity, or the limits of one level, as a running service has them stored.
Limits of the configuration file are not stored: ratelimit explain shows which limits are
in force, and where each comes from.`, getEntity, getLimits, getNamespace, getUsage)
}

func newSet() *cobra.Command {
	return newVerb("set", "Create or change an entity or limits, or set a balance", `set creates or changes an entity, or the limits of one level, in a running service. The
change is in force at once on this node, and within 5 seconds on every other one. It leaves
an audit event where the store keeps an audit.`, setEntity, setLimits, setBucket)
}

func newDelete() *cobra.Command {
	return newVerb("delete", "Delete an entity, limits or a namespace", `delete deletes an entity with its limits, the limits of one level, or a namespace, from a running
service. It asks first; --yes answers. Balances stay as they are.`, deleteEntity, deleteLimits, deleteNamespace)
}

func newList() *cobra.Command {
	cmd := newVerb("list", "List entities, limits, buckets, usage, disabled subjects or the audit", `list shows all that a running service has stored, or a part of it.`, listEntities, listLimits, listBuckets, listDisabled, listNamespaces, listOrphans, listUsage, listAudit)
	cmd.SuggestFor = []string{"entities", "limits", "buckets", "usage", "audit", "namespaces"} // a noun without its verb
	return cmd
}

func newReset() *cobra.Command {
	return newVerb("reset", "Fill a bucket, as if it had never been used", `reset fills the bucket of an entity and a resource. It is no usage, and leaves an audit event.`,
		adjustment("reset", "Fill a bucket"))
}

func newTopUp() *cobra.Command {
	return newVerb("top-up", "Give tokens to a bucket", `top-up gives tokens to the bucket of an entity and a resource, up to its capacity. With
--once TEXT it is made once a day, however often it is repeated.`,
		adjustment("top-up", "Give tokens to a bucket"))
}

func newTakeOut() *cobra.Command {
	return newVerb("take-out", "Take tokens out of a bucket", `take-out takes tokens out of the bucket of an entity and a resource, into debt if need be.
With --once TEXT it is made once a day, however often it is repeated.`,
		adjustment("take-out", "Take tokens out of a bucket"))
}

func setBucket(o *operator) *cobra.Command {
	return adjustment("set", "Set the balance of a bucket")(o)
}
