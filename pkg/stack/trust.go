package stack

import (
	"regexp"
	"slices"
	"strings"
)

// maxTrust is the longest document of a role's trust that IAM allows, in characters.
const maxTrust = 2048

// trustFrame is at least the length of a trust without its provider and ServiceAccounts.
const trustFrame = 300

var (
	providerForm       = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/([A-Za-z0-9.-]+(?:/[\w.~-]+)*)$`)
	issuerForm         = regexp.MustCompile(`^https://([A-Za-z0-9.-]+(?:/[\w.~-]+)*)$`)
	serviceAccountForm = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$`)
)

// trust checks the callers that may assume the roles.
func (c *checker) trust(i IAM) {
	c.want(i.Trust == "" || slices.Contains(trusts(), i.Trust), "iam.trust is %.50q; it must be account, ecs, ec2, pods or irsa", i.Trust)
	if i.Trust != TrustIRSA {
		c.want(i.Provider == "" && len(i.ServiceAccounts) == 0, "iam.oidc_provider and iam.service_accounts need iam.trust irsa")
		return
	}
	c.want(i.issuer() != "", "iam.oidc_provider is %.200q; it must be the ARN of a provider, or the https URL of an issuer without a '/' at its end", i.Provider)
	c.want(len(i.ServiceAccounts) > 0, "iam.trust irsa needs iam.service_accounts")
	size := trustFrame
	for _, account := range i.ServiceAccounts {
		size += len(subject(account)) + len(`"",`)
	}
	size += len(i.Provider) + 2*len(i.issuer())
	c.want(size <= maxTrust, "iam.service_accounts make a trust of about %d characters; IAM allows %d", size, maxTrust)
	for n, account := range i.ServiceAccounts {
		c.want(serviceAccountForm.MatchString(account), "iam.service_accounts has %.320q; it must be NAMESPACE/NAME, as Kubernetes allows them", account)
		c.want(!slices.Contains(i.ServiceAccounts[:n], account), "iam.service_accounts has %.320q twice", account)
	}
}

// issuer returns the issuer without its scheme, as IAM names it; "" for a wrong provider.
func (i IAM) issuer() string {
	for _, form := range []*regexp.Regexp{providerForm, issuerForm} {
		if m := form.FindStringSubmatch(i.Provider); m != nil {
			return m[1]
		}
	}
	return ""
}

// trust returns which callers may assume the roles.
func (t *builder) trust() policyStatement {
	switch t.o.IAM.Trust {
	case TrustECS:
		return assumedBy("ecs-tasks.amazonaws.com", "sts:AssumeRole")
	case TrustEC2:
		return assumedBy("ec2.amazonaws.com", "sts:AssumeRole")
	case TrustPods:
		return assumedBy("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")
	case TrustIRSA:
		return t.o.IAM.assumedByAccounts()
	case TrustAccount:
	}
	return policyStatement{
		"Effect": "Allow", "Action": []string{"sts:AssumeRole"},
		"Principal": object{"AWS": sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")},
	}
}

func assumedBy(service string, actions ...string) policyStatement {
	return policyStatement{"Effect": "Allow", "Action": actions, "Principal": object{"Service": service}}
}

// subject returns the name that a ServiceAccount has in its tokens.
func subject(account string) string {
	return "system:serviceaccount:" + strings.Replace(account, "/", ":", 1)
}

// assumedByAccounts trusts tokens that the cluster made for the ServiceAccounts (sub) to show
// them to AWS (aud). Without the first condition every pod of the cluster could assume the role.
func (i IAM) assumedByAccounts() policyStatement {
	provider := any(i.Provider)
	if !strings.HasPrefix(i.Provider, "arn:") {
		provider = sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/" + i.issuer())
	}
	subjects := make([]string, len(i.ServiceAccounts))
	for n, account := range i.ServiceAccounts {
		subjects[n] = subject(account)
	}
	return policyStatement{
		"Effect": "Allow", "Action": []string{"sts:AssumeRoleWithWebIdentity"},
		"Principal": object{"Federated": provider},
		"Condition": object{"StringEquals": object{i.issuer() + ":sub": subjects, i.issuer() + ":aud": "sts.amazonaws.com"}},
	}
}
