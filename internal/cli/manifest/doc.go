// Package manifest keeps the entities and limits of a namespace as files have them. [Read] reads
// the files, [Parse] checks them, [NewPlan] compares them with a service, and [Plan.Apply] makes the
// changes.
//
// A manifest with a name owns the records that it made. Their inventory is stored in the
// same namespace, as entities below the ID [Root]: each record, and the digest of its
// content when it was applied. A record that left the manifest is pruned under three
// conditions. Its content still has that digest, no other manifest owns it, and its deletion
// deletes nothing else.
package manifest
