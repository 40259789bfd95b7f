package stack_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/stack"
)

const issuer = "oidc.eks.eu-central-1.amazonaws.com/id/0123456789ABCDEF"

func irsa(provider string, accounts ...string) stack.Options {
	return stack.Options{Name: "limits", IAM: stack.IAM{Roles: true, Trust: stack.TrustIRSA, Provider: provider, ServiceAccounts: accounts}}
}

// Each trust names its callers, and for IRSA the ServiceAccounts and the audience of tokens.
func TestTrusts(t *testing.T) {
	account := map[string]any{"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
	ofTokens := func(provider any, subjects ...any) map[string]any {
		return map[string]any{
			"Effect": "Allow", "Action": []any{"sts:AssumeRoleWithWebIdentity"}, "Principal": map[string]any{"Federated": provider},
			"Condition": map[string]any{"StringEquals": map[string]any{issuer + ":sub": subjects, issuer + ":aud": "sts.amazonaws.com"}},
		}
	}
	ofService := func(name string, actions ...any) map[string]any {
		return map[string]any{"Effect": "Allow", "Action": actions, "Principal": map[string]any{"Service": name}}
	}
	roles := func(trust stack.Trust) stack.Options {
		return stack.Options{Name: "limits", IAM: stack.IAM{Roles: true, Trust: trust}}
	}
	for name, test := range map[string]struct {
		o    stack.Options
		want map[string]any
	}{
		"default": {roles(""), map[string]any{"Effect": "Allow", "Action": []any{"sts:AssumeRole"}, "Principal": map[string]any{"AWS": account}}},
		"account": {roles(stack.TrustAccount), map[string]any{"Effect": "Allow", "Action": []any{"sts:AssumeRole"}, "Principal": map[string]any{"AWS": account}}},
		"ecs":     {roles(stack.TrustECS), ofService("ecs-tasks.amazonaws.com", "sts:AssumeRole")},
		"ec2":     {roles(stack.TrustEC2), ofService("ec2.amazonaws.com", "sts:AssumeRole")},
		"pods":    {roles(stack.TrustPods), ofService("pods.eks.amazonaws.com", "sts:AssumeRole", "sts:TagSession")},
		"irsa by ARN": {
			irsa("arn:aws:iam::123456789012:oidc-provider/"+issuer, "ratelimit/edge-ratelimit", "other/edge"),
			ofTokens("arn:aws:iam::123456789012:oidc-provider/"+issuer, "system:serviceaccount:ratelimit:edge-ratelimit", "system:serviceaccount:other:edge"),
		},
		"irsa by URL": {
			irsa("https://"+issuer, "ratelimit/edge-ratelimit"),
			ofTokens(map[string]any{"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:oidc-provider/" + issuer}, "system:serviceaccount:ratelimit:edge-ratelimit"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := rendered(t, test.o)
			for _, role := range []string{"TakeOnlyRole", "FullRole", "ReadOnlyRole"} {
				if diff := cmp.Diff([]any{test.want}, at(t, got.Resources[role].Properties, "AssumeRolePolicyDocument", "Statement")); diff != "" {
					t.Errorf("%s (-want +got):\n%s", role, diff)
				}
			}
		})
	}
}

// A trust that no pod could use, or that every pod could, is refused.
func TestWrongTrusts(t *testing.T) {
	provider := "https://" + issuer
	for name, test := range map[string]struct {
		o    stack.Options
		want []string
	}{
		"no provider":         {irsa("", "a/b"), []string{`iam.oidc_provider is ""`}},
		"no accounts":         {irsa(provider), []string{"needs iam.service_accounts"}},
		"http":                {irsa("http://"+issuer, "a/b"), []string{"the https URL"}},
		"slash at the end":    {irsa(provider+"/", "a/b"), []string{"without a '/' at its end"}},
		"a role":              {irsa("arn:aws:iam::123456789012:role/x", "a/b"), []string{"the ARN of a provider"}},
		"a name alone":        {irsa(provider, "b"), []string{`"b"; it must be NAMESPACE/NAME`}},
		"any account":         {irsa(provider, "a/*"), []string{"NAMESPACE/NAME"}},
		"three parts":         {irsa(provider, "a/b/c"), []string{"NAMESPACE/NAME"}},
		"long namespace":      {irsa(provider, strings.Repeat("a", 64)+"/b"), []string{"NAMESPACE/NAME"}},
		"twice":               {irsa(provider, "a/b", "a/b"), []string{`"a/b" twice`}},
		"longest":             {irsa(provider, strings.Repeat("a", 63)+"/"+strings.Repeat("b", 253)), nil},
		"provider of no irsa": {stack.Options{Name: "abc", IAM: stack.IAM{Provider: provider}}, []string{"need iam.trust irsa"}},
	} {
		t.Run(name, func(t *testing.T) { wantProblems(t, test.o, test.want) })
	}
}

// A trust that is taken fits into a role, and the largest is refused before IAM does.
func TestTrustFits(t *testing.T) {
	o := irsa("https://"+issuer, "a/b")
	for n := 0; o.Check() == nil; n++ {
		text, err := json.Marshal(rendered(t, o).Resources["FullRole"].Properties["AssumeRolePolicyDocument"])
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 2048 {
			t.Fatalf("%d accounts make %d characters", len(o.IAM.ServiceAccounts), len(text))
		}
		o.IAM.ServiceAccounts = append(o.IAM.ServiceAccounts, fmt.Sprintf("%s/%d", strings.Repeat("n", 40), n))
	}
	if n := len(o.IAM.ServiceAccounts); n < 15 {
		t.Errorf("%d accounts are refused", n)
	}
	wantProblems(t, o, []string{"IAM allows 2048"})
}
