package stack

import (
	"bytes"
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

// Template is a template of CloudFormation.
type Template struct{ root object }

// metadataKey is where the template carries its options.
const metadataKey = "Ratelimit"

// maxBody is the largest template that CloudFormation takes in a call, in bytes.
const maxBody = 51_200

// Render returns the template of the options. It fails for options that [Options.Check]
// refuses, and for those whose template is larger than CloudFormation takes in a call.
func Render(o Options) (*Template, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	t := &builder{o: o.withDefaults(), parameters: object{}, resources: object{}, outputs: object{}}
	if err := t.addTable(); err != nil {
		return nil, err
	}
	t.addIAM()
	t.addAggregator()
	t.addAlarms()
	root := object{
		"AWSTemplateFormatVersion": "2010-09-09",
		"Description":              "Buckets and limits of ratelimit: table " + o.Name,
		"Metadata":                 object{metadataKey: object{"Options": o}},
		"Resources":                t.resources,
		"Outputs":                  t.outputs,
	}
	if len(t.parameters) > 0 {
		root["Parameters"] = t.parameters
	}
	template, err := newTemplate(root)
	if err != nil {
		return nil, err
	}
	if body, err := template.JSON(); err != nil {
		return nil, err
	} else if len(body) > maxBody {
		return nil, fmt.Errorf("%w: the template has %d bytes, and CloudFormation takes %d; name fewer namespaces", ErrInvalid, len(body), maxBody)
	}
	return template, nil
}

// newTemplate brings a template to the form that JSON has.
func newTemplate(root object) (*Template, error) {
	text, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	plain := object{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&plain); err != nil {
		return nil, err
	}
	return &Template{plain}, nil
}

// JSON returns the template as JSON in one line.
func (t *Template) JSON() ([]byte, error) { return json.Marshal(t.root) }

// YAML returns the template as YAML, for people.
func (t *Template) YAML() ([]byte, error) {
	text, err := t.JSON()
	if err != nil {
		return nil, err
	}
	var node yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	plainStyle(&node)
	out := &bytes.Buffer{}
	encoder := yaml.NewEncoder(out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&node); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// plainStyle takes the style of JSON from a document. Texts stay quoted: a date or a
// number in quotes is a text.
func plainStyle(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = 0
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			child.Style = 0
			continue
		}
		plainStyle(child)
	}
}

// optionsOf reads the options that a template carries. It refuses those that it does not
// know all of: an update by this program would drop the others.
func optionsOf(body string) (Options, error) {
	var carried struct {
		Metadata map[string]struct {
			Options json.RawMessage `json:"Options"`
		} `json:"Metadata"`
	}
	if err := json.Unmarshal([]byte(body), &carried); err != nil {
		return Options{}, fmt.Errorf("%w: the template of the stack cannot be read: %w", ErrInvalid, err)
	}
	text := carried.Metadata[metadataKey].Options
	if text == nil {
		return Options{}, fmt.Errorf("%w: the template of the stack carries no options: ratelimit did not make it", ErrInvalid)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var o Options
	if err := decoder.Decode(&o); err != nil {
		return Options{}, fmt.Errorf("%w: the stack has options of another version of the program: %w", ErrInvalid, err)
	}
	return o, nil
}

// addIAM adds the policies, and the roles that are asked for.
func (t *builder) addIAM() {
	if t.o.IAM.Off {
		return
	}
	whole := t.scope(anySpace)
	for _, a := range accesses() {
		policy := a.logical + "Policy"
		t.policy(policy, a.component, "", a.document(whole))
		if t.o.IAM.Roles {
			t.role(a.logical+"Role", a.component, t.trust(), object{"ManagedPolicyArns": []any{ref(policy)}})
		}
	}
	t.addProcess()
	for _, n := range t.o.IAM.Namespaces {
		if n.ID == "" {
			continue
		}
		for _, a := range accesses() {
			t.policy(a.logical+"Policy"+n.logical(), a.component+"-"+n.ID, fmt.Sprintf(" of the namespace %.40q", n.Name), a.document(t.scope(n.ID)))
		}
	}
}
