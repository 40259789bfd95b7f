package items

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// SchemaVersion is the version of the layout that this program reads and writes.
const SchemaVersion = "1"

// marker says that there is a table. A server that has lost it has lost the rest too.
type marker struct{ schema, id, created string }

func newMarker(now time.Time) marker {
	return marker{SchemaVersion, rand.Text(), now.UTC().Format(time.RFC3339)}
}

func (m marker) fields() []string {
	return []string{"schema", m.schema, "id", m.id, "created", m.created}
}

// checkMarker reports why a table cannot be used. known says that it was there before.
func checkMarker(name string, fields map[string]string, known bool) error {
	switch schema := fields["schema"]; {
	case len(fields) == 0 && known:
		return refused(fmt.Errorf("%w %s: it was there before; restore the server's data, or begin anew with ratelimit valkey create", ErrLost, name))
	case len(fields) == 0:
		return fmt.Errorf("%w: there is no table %s on the server; make it with ratelimit valkey create, or set store.valkey.create", limiter.ErrInvalid, name)
	case schema != SchemaVersion:
		return fmt.Errorf("%w: the table %s has the schema %.20q; this program reads %s", limiter.ErrInvalid, name, schema, SchemaVersion)
	}
	return nil
}
