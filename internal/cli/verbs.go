package cli

import "github.com/spf13/cobra"

// NewGet returns the command get.
func NewGet() *cobra.Command {
	return newVerb("get", "Show one stored record, or one bucket", `get shows an entity, or the limits of one level, as a running service has them stored, or a
bucket as it stands. Limits of the configuration file are not stored: ratelimit explain shows
which limits are in force, and where each comes from.`, getEntity, getLimits, getBucket, getNamespace, getUsage)
}

// NewSet returns the command set.
func NewSet() *cobra.Command {
	return newVerb("set", "Create or change an entity or limits, or set a balance", `set creates or changes an entity, or the limits of one level, in a running service. The
change is in force at once on this node, and within 5 seconds on every other one. It leaves
an audit event where the store keeps an audit.`, setEntity, setLimits, setBucket)
}

// NewDelete returns the command delete.
func NewDelete() *cobra.Command {
	return newVerb("delete", "Delete an entity, limits or a namespace", `delete deletes an entity with its limits, the limits of one level, or a namespace, from a running
service. It asks first; --yes answers. Balances stay as they are.`, deleteEntity, deleteLimits, deleteNamespace)
}

// NewList returns the command list.
func NewList() *cobra.Command {
	cmd := newVerb("list", "List entities, limits, buckets, usage, disabled subjects or the audit", `list shows all that a running service has stored, or a part of it.`, listEntities, listLimits, listBuckets, listDisabled, listNamespaces, listOrphans, listUsage, listAudit)
	cmd.SuggestFor = []string{"entities", "limits", "buckets", "usage", "audit", "namespaces"} // a noun without its verb
	return cmd
}

// whichBucket is the help text about the bucket, for the verbs that change balances.
const whichBucket = `

Where the entity has several buckets for the resource, of plans and of rules with limits of
their own, the command names them, and --variant says which. A bucket that was not used since
it was last full is not stored: there is nothing to change.`

// NewReset returns the command reset.
func NewReset() *cobra.Command {
	return newVerb("reset", "Fill a bucket, as if it had never been used", `reset fills the bucket of an entity and a resource; tokens above the capacity stay. It is no usage, and leaves an audit event.`+whichBucket,
		adjustment("reset", "Fill a bucket"))
}

// NewTopUp returns the command top-up.
func NewTopUp() *cobra.Command {
	return newVerb("top-up", "Give tokens to a bucket", `top-up gives tokens to the bucket of an entity and a resource. A top-up that does not fit below the
capacity as a whole is refused, with the amounts. With --up-to-capacity what fits is booked; the
command prints the booked amount, and the amount that was cut. With --beyond all is booked, such
as an extra that a customer paid for: requests use the part above the capacity first, it does not
refill, and a change of the limit keeps it. It ends with the window of a calendar quota.

With --once TEXT a top-up is made once a day, however often it is repeated; a repetition prints
the amount booked the first time, and a refusal does not use the text.`+whichBucket,
		adjustment("top-up", "Give tokens to a bucket"))
}

// NewTakeOut returns the command take-out.
func NewTakeOut() *cobra.Command {
	return newVerb("take-out", "Take tokens out of a bucket", `take-out takes tokens out of the bucket of an entity and a resource, into debt if need be, down to
the debt floor. With --once TEXT it is made once a day, however often it is repeated.`+whichBucket,
		adjustment("take-out", "Take tokens out of a bucket"))
}

func setBucket(o *operator) *cobra.Command {
	return adjustment("set", "Set the balance of a bucket")(o)
}
