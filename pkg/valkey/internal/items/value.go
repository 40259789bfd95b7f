package items

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attributes are those of an item, by name.
type attributes = map[string]types.AttributeValue

// text returns the text of a value, "" where it is none.
func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// encode returns a value as a hash has it: a number, or a letter for its type and the value. Documents and
// sets are JSON.
func encode(v types.AttributeValue) (string, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return "S" + v.Value, nil
	case *types.AttributeValueMemberN:
		return v.Value, nil
	case *types.AttributeValueMemberB:
		return "B" + string(v.Value), nil
	}
	d, err := documentOf(v)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(d)
	return "J" + string(b), err
}

// decode returns the value that encode made the text of.
func decode(s string) (types.AttributeValue, error) {
	if s == "" {
		return nil, errors.New("an attribute is empty, and has no type")
	}
	switch c := s[0]; {
	case c == '-' || c >= '0' && c <= '9':
		return &types.AttributeValueMemberN{Value: s}, nil
	case c == 'S':
		return &types.AttributeValueMemberS{Value: s[1:]}, nil
	case c == 'B':
		return &types.AttributeValueMemberB{Value: []byte(s[1:])}, nil
	case c == 'J':
		var d document
		if err := json.Unmarshal([]byte(s[1:]), &d); err != nil {
			return nil, fmt.Errorf("an attribute is no document: %w", err)
		}
		return d.value(), nil
	}
	return nil, fmt.Errorf("an attribute has the type %q, which is neither a number nor S, B or J", s[:1])
}

// document is a value of more than one part. One field of it is set. Texts are bytes, since names
// may be any bytes.
type document struct {
	Text    *[]byte              `json:"s,omitempty"`
	Number  *string              `json:"n,omitempty"`
	Binary  *[]byte              `json:"b,omitempty"`
	Bool    *bool                `json:"t,omitempty"`
	Null    *bool                `json:"z,omitempty"`
	Texts   *[][]byte            `json:"ss,omitempty"`
	Numbers *[]string            `json:"ns,omitempty"`
	List    *[]document          `json:"l,omitempty"`
	Map     *map[string]document `json:"m,omitempty"`
}

func documentOf(v types.AttributeValue) (d document, err error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		b := []byte(v.Value)
		d.Text = &b
	case *types.AttributeValueMemberN:
		d.Number = &v.Value
	case *types.AttributeValueMemberB:
		d.Binary = &v.Value
	case *types.AttributeValueMemberBOOL:
		d.Bool = &v.Value
	case *types.AttributeValueMemberNULL:
		d.Null = &v.Value
	case *types.AttributeValueMemberSS:
		all := make([][]byte, len(v.Value))
		for i, s := range slices.Sorted(slices.Values(v.Value)) {
			all[i] = []byte(s)
		}
		d.Texts = &all
	case *types.AttributeValueMemberNS:
		all := slices.Sorted(slices.Values(v.Value))
		d.Numbers = &all
	case *types.AttributeValueMemberL:
		all := make([]document, len(v.Value))
		for i := range v.Value {
			if all[i], err = documentOf(v.Value[i]); err != nil {
				return d, err
			}
		}
		d.List = &all
	case *types.AttributeValueMemberM:
		all := make(map[string]document, len(v.Value))
		for k := range v.Value {
			if all[k], err = documentOf(v.Value[k]); err != nil {
				return d, err
			}
		}
		d.Map = &all
	default:
		return d, fmt.Errorf("a value has the type %T, which no item has", v)
	}
	return d, nil
}

func (d *document) value() types.AttributeValue {
	switch {
	case d.Text != nil:
		return &types.AttributeValueMemberS{Value: string(*d.Text)}
	case d.Number != nil:
		return &types.AttributeValueMemberN{Value: *d.Number}
	case d.Binary != nil:
		return &types.AttributeValueMemberB{Value: *d.Binary}
	case d.Bool != nil:
		return &types.AttributeValueMemberBOOL{Value: *d.Bool}
	case d.Texts != nil:
		v := &types.AttributeValueMemberSS{}
		for _, s := range *d.Texts {
			v.Value = append(v.Value, string(s))
		}
		return v
	case d.Numbers != nil:
		return &types.AttributeValueMemberNS{Value: *d.Numbers}
	case d.List != nil:
		v := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(*d.List))}
		for i := range *d.List {
			v.Value[i] = (*d.List)[i].value()
		}
		return v
	case d.Map != nil:
		v := &types.AttributeValueMemberM{Value: make(attributes, len(*d.Map))}
		for k, part := range *d.Map {
			v.Value[k] = part.value()
		}
		return v
	}
	return &types.AttributeValueMemberNULL{Value: true}
}
