package items

import (
	"fmt"

	"github.com/redis/rueidis"
)

// parse reads the reply of items.lua, or of plain.lua, to a batch.
func parse(reply []rueidis.RedisMessage, b *batch) (*result, error) {
	n := len(b.writes)
	if len(reply) != 4 {
		return nil, wrongReply("has not 4 parts")
	}
	applied, err := reply[0].AsInt64()
	if err != nil {
		return nil, wrongReply(err.Error())
	}
	r := &result{applied: applied == 1, held: make([]bool, n), images: make([]attributes, n)}
	if reply[3].IsString() {
		if id, err := reply[3].ToString(); err != nil || !r.applied || n != 1 || id == "" || id != b.writes[0].id() { // rule: a reply shows that it is that to its write
			return nil, wrongReply("is that to another write")
		}
		return r, nil
	}
	parts, err := reply[3].ToArray()
	if err != nil {
		return nil, wrongReply(err.Error())
	}
	made := r.applied && b.token != "" && len(parts) == 0 // by an earlier call of the same transaction
	if r.incomplete = applied == 2; r.incomplete || made {
		return r, nil
	}
	if len(parts) != n {
		return nil, wrongReply(fmt.Sprintf("is of %d writes, and %d were sent", len(parts), n))
	}
	for i := range parts {
		if r.held[i], r.images[i], err = parsePart(&parts[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// parsePart reads the reply to one write.
func parsePart(part *rueidis.RedisMessage) (held bool, image attributes, err error) {
	pair, err := part.ToArray()
	if err != nil || len(pair) != 2 {
		return false, nil, wrongReply("has a part that is no pair")
	}
	n, err := pair[0].AsInt64()
	if err != nil {
		return false, nil, wrongReply(err.Error())
	}
	flat, err := pair[1].AsStrSlice()
	if err != nil {
		return false, nil, wrongReply(err.Error())
	}
	image, err = attributesOf(flat)
	return n == 1, image, err
}

// attributesOf reads names and values in turn; nil for none.
func attributesOf(flat []string) (attributes, error) {
	if len(flat) == 0 {
		return nil, nil
	}
	m := make(attributes, len(flat)/2)
	for i := 0; i+1 < len(flat); i += 2 {
		if err := decodeInto(m, flat[i], flat[i+1]); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// decodeInto puts an attribute of a hash into an item.
func decodeInto(m attributes, name, text string) error {
	v, err := decode(text)
	if err != nil {
		return wrong(fmt.Errorf("%q: %w", name, err))
	}
	m[name] = v
	return nil
}
