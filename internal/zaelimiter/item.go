package zaelimiter

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is an item of the table.
type item map[string]types.AttributeValue

// text returns an attribute that is a text, "" for any other.
func (i item) text(attr string) string {
	if s, ok := i[attr].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// number returns an attribute that is a whole number.
func (i item) number(attr string) (int64, bool) {
	n, ok := i[attr].(*types.AttributeValueMemberN)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	return v, err == nil
}

// flag returns an attribute that is true or false; false for any other.
func (i item) flag(attr string) bool {
	b, ok := i[attr].(*types.AttributeValueMemberBOOL)
	return ok && b.Value
}

func (i item) has(attr string) bool {
	_, found := i[attr]
	return found
}

// stringMap returns an attribute that is a map of texts, and the names of members that are
// no texts.
func (i item) stringMap(attr string) (texts map[string]string, others []string) {
	m, ok := i[attr].(*types.AttributeValueMemberM)
	if !ok {
		return nil, nil
	}
	for name, value := range m.Value {
		s, ok := value.(*types.AttributeValueMemberS)
		if !ok {
			others = append(others, name)
			continue
		}
		if texts == nil {
			texts = make(map[string]string, len(m.Value))
		}
		texts[name] = s.Value
	}
	return texts, others
}
