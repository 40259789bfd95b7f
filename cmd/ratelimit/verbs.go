package main

import "github.com/spf13/cobra"

func newGet() *cobra.Command {
	return newVerb("get", "Show one stored record", `get shows an entity, or the limits of one level, as a running service has them stored.
Limits of the configuration file are not stored: ratelimit explain shows which limits are
in force, and where each comes from.`, getEntity, getLimits)
}

func newSet() *cobra.Command {
	return newVerb("set", "Create or change an entity or limits", `set creates or changes an entity, or the limits of one level, in a running service. The
change is in force at once on this node, and within 5 seconds on every other one. It leaves
an audit event where the store keeps an audit.`, setEntity, setLimits)
}

func newDelete() *cobra.Command {
	return newVerb("delete", "Delete an entity or limits", `delete deletes an entity with its limits, or the limits of one level, from a running
service. It asks first; --yes answers. Balances stay as they are.`, deleteEntity, deleteLimits)
}

func newList() *cobra.Command {
	return newVerb("list", "List entities, limits or the audit", `list shows all that a running service has stored, or a part of it.`, listEntities, listLimits, listAudit)
}
