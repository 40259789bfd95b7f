package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// builder collects the sections of a template.
type builder struct {
	o          Options // with defaults
	parameters object
	resources  object
	outputs    object
}

func (t *builder) output(name, description string, value any) {
	t.outputs[name] = object{"Description": description, "Value": value}
}

// maxLogicalName is how much of a namespace's name stands in logical names.
const maxLogicalName = 40

// logical returns the namespace's part of logical names: the letters and digits of its name,
// for people, and a hash of its id, to be unlike any other.
func (n Namespace) logical() string {
	var b strings.Builder
	for _, r := range n.Name {
		if b.Len() < maxLogicalName && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			b.WriteRune(r)
		}
	}
	sum := sha256.Sum256([]byte(n.ID))
	return b.String() + hex.EncodeToString(sum[:8])
}

// policy adds a managed policy, with an output for its ARN.
func (t *builder) policy(logical, component, about string, document policyDocument) {
	properties := object{"PolicyDocument": document}
	if name := t.o.PolicyName(component); name != "" {
		properties["ManagedPolicyName"] = name
	}
	t.resources[logical] = resource("AWS::IAM::ManagedPolicy", properties)
	t.output(logical+"Arn", "ARN of the policy "+component+about, ref(logical))
}

// role adds a role, with an output for its ARN.
func (t *builder) role(logical, component string, trust policyStatement, properties object) {
	properties["AssumeRolePolicyDocument"] = object{"Version": "2012-10-17", "Statement": []any{trust}}
	if name := t.o.RoleName(component); name != "" {
		properties["RoleName"] = name
	}
	if boundary := t.o.IAM.Boundary; strings.HasPrefix(boundary, "arn:") {
		properties["PermissionsBoundary"] = boundary
	} else if boundary != "" {
		properties["PermissionsBoundary"] = sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/" + boundary)
	}
	t.resources[logical] = resource("AWS::IAM::Role", properties)
	t.output(logical+"Arn", "ARN of the role "+component, getAtt(logical, "Arn"))
}

// policyStatement is one that says which callers may assume a role.
type policyStatement = object
