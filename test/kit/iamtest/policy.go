package iamtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy is a policy of statements that allow.
type Policy struct{ statements []statement }

type statement struct {
	Effect    string                          `json:"Effect"`
	Action    []string                        `json:"Action"`
	Resource  []any                           `json:"Resource"`
	Condition map[string]map[string]oneOrMore `json:"Condition"`
}

// oneOrMore is a text or a list of them.
type oneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(o))
}

// FromTemplate reads a managed policy of a template in JSON, or the one policy that a role has itself. Attributes are those of
// resources, as "Table.Arn".
func FromTemplate(template []byte, logical string, attributes map[string]string) (*Policy, error) {
	var t struct {
		Resources map[string]struct {
			Type       string `json:"Type"`
			Properties struct {
				Document json.RawMessage `json:"PolicyDocument"`
				Policies []struct {
					Document json.RawMessage `json:"PolicyDocument"`
				} `json:"Policies"`
			} `json:"Properties"`
		} `json:"Resources"`
	}
	if err := json.Unmarshal(template, &t); err != nil {
		return nil, err
	}
	r, ok := t.Resources[logical]
	if ok && r.Type == "AWS::IAM::Role" && len(r.Properties.Policies) == 1 {
		return Parse(r.Properties.Policies[0].Document, attributes)
	}
	if !ok || r.Type != "AWS::IAM::ManagedPolicy" {
		return nil, fmt.Errorf("the template has no policy %s", logical)
	}
	return Parse(r.Properties.Document, attributes)
}

// Parse reads a policy document. Resources may refer to attributes as templates do.
func Parse(document []byte, attributes map[string]string) (*Policy, error) {
	var d struct {
		Statement []statement `json:"Statement"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	if len(d.Statement) == 0 {
		return nil, errors.New("the policy has no statement")
	}
	for _, s := range d.Statement {
		if s.Effect != "Allow" {
			return nil, fmt.Errorf("the effect %q is not known", s.Effect)
		}
		for i, r := range s.Resource {
			arn, err := resolve(r, attributes)
			if err != nil {
				return nil, err
			}
			s.Resource[i] = arn
		}
		for operator := range s.Condition {
			if _, known := operators()[operator]; !known {
				return nil, fmt.Errorf("the condition %q is not known", operator)
			}
		}
	}
	return &Policy{d.Statement}, nil
}

// resolve returns the ARN that a resource refers to.
func resolve(r any, attributes map[string]string) (string, error) {
	text, ok := r.(string)
	if reference, is := r.(map[string]any); is {
		if list, is := reference["Fn::GetAtt"].([]any); is && len(list) == 2 {
			text, ok = fmt.Sprintf("${%v.%v}", list[0], list[1]), true
		} else {
			text, ok = reference["Fn::Sub"].(string)
		}
	}
	if !ok {
		return "", fmt.Errorf("the resource %v is not known", r)
	}
	for name, value := range attributes {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	if strings.Contains(text, "${") {
		return "", fmt.Errorf("the resource %s refers to what is not known", text)
	}
	return text, nil
}

// Access is a permission that a call needs.
type Access struct {
	Action     string // such as dynamodb:GetItem
	Resource   string // ARN
	Keys       []string
	Attributes []string
}

// Allows reports whether a statement allows the access.
func (p *Policy) Allows(a Access) bool {
	return slices.ContainsFunc(p.statements, func(s statement) bool { return s.allows(a) })
}

func (s *statement) allows(a Access) bool {
	if !slices.ContainsFunc(s.Action, func(action string) bool { return like(action, a.Action) }) {
		return false
	}
	if !slices.ContainsFunc(s.Resource, func(r any) bool { return like(r.(string), a.Resource) }) {
		return false
	}
	for operator, keys := range s.Condition {
		for key, want := range keys {
			var got []string
			switch key {
			case "dynamodb:LeadingKeys":
				got = a.Keys
			case "dynamodb:Attributes":
				got = a.Attributes
			default:
				return false
			}
			if !operators()[operator](got, want) {
				return false
			}
		}
	}
	return true
}

// operators are the conditions that are known.
func operators() map[string]func(got, want []string) bool {
	all := func(matches func(pattern, text string) bool) func(got, want []string) bool {
		return func(got, want []string) bool {
			return !slices.ContainsFunc(got, func(text string) bool {
				return !slices.ContainsFunc(want, func(pattern string) bool { return matches(pattern, text) })
			})
		}
	}
	return map[string]func(got, want []string) bool{
		"ForAllValues:StringLike":   all(like),
		"ForAllValues:StringEquals": all(func(pattern, text string) bool { return pattern == text }),
		"Null": func(got, want []string) bool {
			return slices.Equal(want, []string{"false"}) && len(got) > 0
		},
	}
}

// like matches * with any run of characters and ? with one.
func like(pattern, text string) bool {
	// path.Match lets * and ? match all but '/', and has classes and escapes.
	plain := strings.NewReplacer("/", "\x00", `\`, "\x01", "[", "\x02", "]", "\x03")
	matched, err := path.Match(plain.Replace(pattern), plain.Replace(text))
	return err == nil && matched
}
