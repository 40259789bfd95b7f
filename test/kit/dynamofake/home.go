package dynamofake

// address is where a key points: key attributes of the right types and no others.
func (t *table) address(key item) (address, error) {
	names := t.keys.names()
	if len(key) != len(names) {
		return address{}, invalid("The number of conditions on the keys is invalid")
	}
	for _, name := range names {
		if typeOf(key[name]) != t.types[name] {
			return address{}, invalid("The provided key element does not match the schema")
		}
	}
	if err := t.keySizes(key, t.keys); err != nil {
		return address{}, err
	}
	return address{place(key[t.keys.hash]), place(key[t.keys.sort])}, nil
}

// home is where an item belongs.
func (t *table) home(it item) (address, error) {
	for _, name := range t.keys.names() {
		switch got := typeOf(it[name]); {
		case got == "":
			return address{}, invalid("One or more parameter values were invalid: Missing the key %s in the item", name)
		case got != t.types[name]:
			return address{}, invalid("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", name, t.types[name], got)
		}
	}
	if err := t.keySizes(it, t.keys); err != nil {
		return address{}, err
	}
	return address{place(it[t.keys.hash]), place(it[t.keys.sort])}, nil
}

// keySizes refuses key values that are empty or too long.
func (t *table) keySizes(it item, k keys) error {
	for _, name := range k.names() {
		v, ok := it[name]
		if !ok {
			continue
		}
		limit := maxSort
		if name == k.hash {
			limit = maxHash
		}
		s, isText := text(v)
		switch {
		case isText && s == "":
			return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", name)
		case len(s) > limit:
			return invalid("One or more parameter values were invalid: Size of key %s has exceeded the maximum size limit of %d bytes", name, limit)
		}
	}
	return nil
}

// check refuses an item that cannot be stored: too large, or with an index key of
// a wrong type or size.
func (t *table) check(it item) error {
	if itemSize(it) > maxItem {
		return invalid("Item size has exceeded the maximum allowed size")
	}
	for _, x := range t.indexes {
		for _, name := range x.keys.names() {
			if v, ok := it[name]; ok && typeOf(v) != t.types[name] {
				return invalid("One or more parameter values were invalid: Type mismatch for Index Key %s Expected: %s Actual: %s IndexName: %s", name, t.types[name], typeOf(v), x.name)
			}
		}
		if err := t.keySizes(it, x.keys); err != nil {
			return err
		}
	}
	return nil
}
