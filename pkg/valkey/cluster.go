package valkey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// way finds the server that has a table, and connects to it. In a cluster that is the primary with the slot of the
// table's keys, which are all in one slot. It is safe for concurrent use.
type way struct {
	Connection

	mu    sync.Mutex
	first int      // of the servers that are asked, the next one to be asked first
	found []string // servers of the cluster, as one of them named them last
}

// errApart is of a server that is in no cluster, where several servers are named.
var errApart = errors.New("the server is in no cluster")

// connect makes a client of the server that has a key, and returns its address where that may change: in a cluster. It
// makes none where that address is at, that of the present client. It asks one server after another: one that is cut
// off from the others of a cluster does not know where the slots are. It ends with ctx, and so does the client.
func (w *way) connect(ctx context.Context, key, at string) (client rueidis.Client, address string, err error) {
	if w.Master != "" {
		client, err = w.dial(ctx, w.Addresses...)
		return client, "", err
	}
	var errs []error
	apart := true
	for _, asked := range w.servers() {
		client, address, err = w.ask(ctx, asked, key, at)
		if err == nil || errors.Is(err, limiter.ErrInvalid) || ctx.Err() != nil {
			return client, address, err
		}
		apart = apart && errors.Is(err, errApart)
		errs = append(errs, err)
	}
	if apart {
		return nil, "", fmt.Errorf("%w: the %d servers of the store are no cluster: name one of them, or sentinels with the name of the primary", limiter.ErrInvalid, len(errs))
	}
	return nil, "", errors.Join(errs...)
}

// servers returns the servers that are asked where a table is. Another one is the first each time.
func (w *way) servers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.Addresses)
	for _, a := range w.found {
		if !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		all = []string{"127.0.0.1:6379"}
	}
	first := w.first % len(all)
	w.first = first + 1
	return slices.Concat(all[first:], all[:first])
}

// ask is connect by what one server knows.
func (w *way) ask(ctx context.Context, asked, key, at string) (client rueidis.Client, address string, err error) {
	if client, err = w.dial(ctx, asked); err != nil {
		return nil, "", err
	}
	owner, err := w.owner(ctx, client, key, asked)
	if err == nil && (owner == asked && owner != at || owner == "") {
		return client, owner, nil
	}
	client.Close()
	if err != nil || owner == at {
		return nil, owner, err
	}
	client, err = w.dial(ctx, owner)
	return client, owner, err
}

// owner returns the address of the primary of a cluster that has a key, as the server that is asked has it; "" = it is
// in no cluster.
func (w *way) owner(ctx context.Context, client rueidis.Client, key, asked string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultConnectTimeout)
	defer cancel()
	info, err := client.Do(ctx, client.B().Info().Section("cluster").Build()).ToString()
	switch {
	case err != nil:
		return "", told(asked, err)
	case strings.Contains(info, "cluster_enabled:1"):
	case len(w.Addresses) > 1:
		return "", fmt.Errorf("%w: %s", errApart, asked)
	default:
		return "", nil
	}
	answers := client.DoMulti(ctx, client.B().ClusterKeyslot().Key(key).Build(), client.B().ClusterSlots().Build())
	slot, err := answers[0].AsInt64()
	if err != nil {
		return "", told(asked, err)
	}
	ranges, err := answers[1].ToArray()
	if err != nil {
		return "", told(asked, err)
	}
	owner, found, err := readSlots(ranges, slot, asked)
	if err == nil {
		w.mu.Lock()
		w.found = found
		w.mu.Unlock()
	}
	return owner, err
}

// told is an error of a server that is asked where a table is.
func told(asked string, err error) error {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return answered(asked, answer)
	}
	return fmt.Errorf("the server of the store at %s does not tell where the table is: %w", asked, err)
}

// readSlots reads the answer to CLUSTER SLOTS: the address of the primary that has a slot, and the addresses of all
// servers.
//
// https://valkey.io/commands/cluster-slots
func readSlots(ranges []rueidis.RedisMessage, slot int64, asked string) (owner string, all []string, err error) {
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return "", nil, fmt.Errorf("the servers of a slot of the cluster are %d parts: %w", len(parts), cmp.Or(err, errors.ErrUnsupported))
		}
		low, err := parts[0].AsInt64()
		high, err2 := parts[1].AsInt64()
		if err := errors.Join(err, err2); err != nil {
			return "", nil, err
		}
		for i := range parts[2:] {
			address, err := readServer(parts[2+i], asked)
			if err != nil {
				return "", nil, err
			}
			if i == 0 && low <= slot && slot <= high {
				owner = address
			}
			if !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	if owner == "" {
		return "", nil, fmt.Errorf("no server of the cluster has slot %d", slot)
	}
	return owner, all, nil
}

// readServer reads the address of a server of a cluster. One that does not know its host is the one that was asked. One
// that is to be known by a name, and has none, is known by its number.
func readServer(m rueidis.RedisMessage, asked string) (string, error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) < 2 {
		return "", fmt.Errorf("a server of the cluster has %d parts: %w", len(parts), cmp.Or(err, errors.ErrUnsupported))
	}
	host, err := parts[0].ToString()
	if err == nil && host == "?" && len(parts) > 3 {
		more, _ := parts[3].AsStrMap()
		host = more["ip"]
	}
	if rueidis.IsRedisNil(err) || err == nil && (host == "" || host == "?") {
		host, _, err = net.SplitHostPort(asked)
	}
	port, err2 := parts[1].AsInt64()
	return net.JoinHostPort(host, strconv.FormatInt(port, 10)), errors.Join(err, err2)
}
