package items

// prefix begins all keys of a table: {name}:
type prefix string

func prefixOf(table string) prefix { return prefix("{" + table + "}:") }

// key returns a key of the table.
func (p prefix) key(name string) string { return string(p) + name }

// item returns the key of an item.
func (p prefix) item(pk, sk string) string { return string(p) + "i:" + pk + "\x00" + sk }
