package stack

import "strings"

// Longest names that IAM allows.
const (
	maxRoleName   = 64
	maxPolicyName = 128
)

// placeholder stands in a format for the default name.
const placeholder = "{}"

// access is the kind of a policy.
type access struct {
	component string // in names
	logical   string // in the template
	document  func(scope) policyDocument
}

// accesses are the policies of a scope, in the order of the template.
func accesses() []access {
	return []access{
		{"take-only", "TakeOnly", takeOnly},
		{"full", "Full", fullAccess},
		{"read-only", "ReadOnly", readOnly},
	}
}

// processComponent names the policy and the role of an aggregator that runs as a process.
const processComponent = "aggregate"

// aggregatorComponent names the aggregator's role and function.
const aggregatorComponent = "aggregator"

// RoleName returns the name of a role of the stack: the format with the default name in place
// of {}; "" without a format, when CloudFormation chooses the name.
func (o Options) RoleName(component string) string {
	return formatted(o.IAM.RoleFormat, o.Name+"-"+component)
}

// PolicyName returns the name of a policy of the stack, as RoleName that of a role.
func (o Options) PolicyName(component string) string {
	return formatted(o.IAM.PolicyFormat, o.Name+"-"+component)
}

func formatted(format, name string) string {
	if format == "" {
		return ""
	}
	return strings.Replace(format, placeholder, name, 1)
}

// format checks the form of a format; names checks the resulting names.
func (c *checker) format(option, format string) {
	if format == "" {
		return
	}
	c.want(strings.Count(format, placeholder) == 1, "%s is %.200q; it must have %s once, where the default name goes", option, format, placeholder)
	rest := strings.Replace(format, placeholder, "", 1)
	c.want(rest == "" || iamNameForm.MatchString(rest), "%s is %.200q; beside %s it may have letters, digits and _+=,.@-", option, format, placeholder)
}

// names checks that no name is longer than IAM allows.
func (c *checker) names(o Options) {
	role := func(component string) {
		name := o.RoleName(component)
		c.want(len(name) <= maxRoleName, "iam.role_format makes the name %s of %d characters; IAM allows %d", name, len(name), maxRoleName)
	}
	policy := func(component string) {
		name := o.PolicyName(component)
		c.want(len(name) <= maxPolicyName, "iam.policy_format makes the name %s of %d characters; IAM allows %d", name, len(name), maxPolicyName)
	}
	if o.IAM.Off {
		return
	}
	for _, a := range accesses() {
		policy(a.component)
		if o.IAM.Roles {
			role(a.component)
		}
		for _, n := range o.IAM.Namespaces {
			if n.ID != "" {
				policy(a.component + "-" + n.ID)
			}
		}
	}
	if o.IAM.Process {
		policy(processComponent)
		if o.IAM.Roles {
			role(processComponent)
		}
	}
	if o.Aggregator.On && o.Aggregator.RoleARN == "" {
		role(aggregatorComponent)
	}
}
