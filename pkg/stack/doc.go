// Package stack is the CloudFormation stack of a fleet: the table, the policies of its
// callers, the alarms, and the aggregator of its stream.
//
// [Render] makes the template of [Options]. A [Manager] creates, updates, lists and deletes
// stacks. The table's definition is [dynamo.TableInput], which the program itself uses to
// create and to check a table.
//
// # Options of a deployed stack
//
// The template carries its options as metadata. An update starts from them, so that an option
// that is not named keeps its value. Tags of the stack carry the versions of the program and
// of the table's schema.
//
// # Policies
//
// IAM sees the partition key of a call and not its sort key. A policy therefore allows
// partition keys by their beginning:
//
//	take-only   a replica that decides: buckets, settlements, its reservation key
//	full        a replica or a person that also stores limits and entities
//	read-only   reads all but secrets
//	aggregate   the aggregator as a process, on request
//
// Each exists for the whole table, and the first three also for each namespace of [IAM.Namespaces]. A replica with
// take-only cannot register a namespace: [Manager.Deploy] and [Manager.Update] register those
// that the options name.
//
// # Aggregator
//
// [Aggregator] has the function that reads the table's stream, and the resources around it. The
// function's code is an artifact of a release, which the options name: the program itself.
package stack
