package stack

// scope is the table and the keys that a policy is about.
type scope struct {
	table   any    // ARN
	indexes any    // ARN of all indexes
	space   string // id of a namespace; anySpace = all of them
}

// anySpace matches the id of every namespace and not the registry's, which is "_".
const anySpace = "???????????"

// Partition keys outside of namespaces.
const (
	registryKeys    = "_/SYSTEM#"                // version, registry of namespaces
	reservationKeys = "_/SECRET#reservation-key" // the key that seals reservations
	replicaKeys     = "_/REPLICAS#"              // what replicas tell of themselves
	progressKeys    = "_/AGGREGATORS#"           // what aggregators tell of themselves
)

// configurationKeys is the kind of the item with the counter that replicas raise.
const configurationKeys = "CONFIGURATION#"

// policyDocument is a policy of IAM.
type policyDocument struct {
	Version   string
	Statement []statement
}

// statement is one of a policy. All of them allow.
type statement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []any
	Condition object `json:",omitempty" yaml:",omitempty"`
}

func allow(sid string, actions []string, resources ...any) statement {
	for i, action := range actions {
		actions[i] = "dynamodb:" + action
	}
	return statement{Sid: sid, Effect: "Allow", Action: actions, Resource: resources}
}

// on restricts a statement to partition keys. Without the second condition a call
// without keys would match the first.
func (s statement) on(keys ...string) statement {
	s.Condition = object{
		"ForAllValues:StringLike": object{"dynamodb:LeadingKeys": keys},
		"Null":                    object{"dynamodb:LeadingKeys": "false"},
	}
	return s
}

// only restricts a statement further, to calls that name no other attributes.
func (s statement) only(attributes ...string) statement {
	s.Condition["ForAllValues:StringEquals"] = object{"dynamodb:Attributes": attributes}
	return s
}

func (s scope) whole() bool { return s.space == anySpace }

// of returns the partition keys of kinds of records of the scope.
func (s scope) of(kinds ...string) []string {
	keys := make([]string, len(kinds))
	for i, kind := range kinds {
		keys[i] = s.space + "/" + kind
	}
	return keys
}

func document(statements ...statement) policyDocument {
	return policyDocument{Version: "2012-10-17", Statement: statements}
}

func (s scope) describe() statement { return allow("Describe", []string{"DescribeTable"}, s.table) }

// takeOnly allows the calls of a replica that decides. The table must have its schema version
// and the namespaces of the replica's rules. A replica raises a counter of
// each namespace of its rules when its configuration changes. It shares the key of reservations,
// unless it is for one namespace: then its configuration has a key. Reports of replicas have names of
// all namespaces, so that a replica for one namespace neither writes nor reads them, nor those of aggregators.
func takeOnly(s scope) policyDocument {
	statements := []statement{
		s.describe(),
		allow("Read", []string{"GetItem", "BatchGetItem", "Query"}, s.table).
			on(append(s.of("SYSTEM#", configurationKeys, "ENTITY#*", "RESOURCE#*", "BUCKET#*"), registryKeys)...),
		allow("Take", []string{"PutItem", "UpdateItem"}, s.table).on(s.of("BUCKET#*")...),
		allow("Settle", []string{"PutItem"}, s.table).on(s.of("SETTLED#*")...),
		allow("Configuration", []string{"UpdateItem"}, s.table).on(s.of(configurationKeys)...).only("PK", "SK", "configuration"),
	}
	if s.whole() {
		statements = append(statements, allow("ReservationKey", []string{"PutItem"}, s.table).on(reservationKeys),
			allow("Replicas", []string{"PutItem", "DeleteItem", "Query"}, s.table).on(replicaKeys),
			allow("Aggregators", []string{"DeleteItem", "Query"}, s.table).on(progressKeys))
	}
	return document(statements...)
}

// fullAccess allows every call of the program to the data of the scope.
func fullAccess(s scope) policyDocument {
	reads, writes := []string{"GetItem", "BatchGetItem", "Query"}, []string{"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"}
	if s.whole() {
		return document(s.describe(), allow("Data", append(reads, writes...), s.table), allow("Indexes", []string{"Query"}, s.indexes))
	}
	return document(
		s.describe(),
		allow("Read", reads, s.table).on(append(s.of("*"), registryKeys)...),
		allow("Write", writes, s.table).on(s.of("*")...),
		s.queryIndexes(),
	)
}

// readOnly allows reading the scope, and no secret.
func readOnly(s scope) policyDocument {
	return document(
		s.describe(),
		allow("Read", []string{"GetItem", "BatchGetItem", "Query"}, s.table).on(append(s.of("*"), registryKeys)...),
		s.queryIndexes(),
	)
}

// queryIndexes allows queries of the indexes. Partition keys of an index begin with the id of
// a namespace, and '/' or '#'.
func (s scope) queryIndexes() statement {
	return allow("Indexes", []string{"Query"}, s.indexes).on(s.space+"/*", s.space+"#*")
}
