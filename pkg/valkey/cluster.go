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
	"github.com/ratelimit/ratelimit/pkg/valkey/internal/items"
)

// way finds the servers that have a table, and connects to them. In a cluster these are the primaries with the slots of
// its places. It is safe for concurrent use.
type way struct {
	Connection

	mu    sync.Mutex
	first int      // of the servers that are asked, the next one to be asked first
	found []string // servers of the cluster, as one of them named them last
}

// errApart is of a server that is in no cluster, where several servers are named.
var errApart = errors.New("the server is in no cluster")

// errOther is of a server that is in a cluster where the first ones were in none, or the other way round.
var errOther = errors.New("the server is in a cluster, unlike at the start, or in none any more: it has not the table")

// connect makes clients of the servers that have slots, with their addresses where these may change: in a cluster. It
// keeps those that there are of other addresses than lost, and returns had where all stay. It asks one server after
// another: one that is cut off from the others of a cluster does not know where the slots are. It ends with ctx, and so
// do the clients.
func (w *way) connect(ctx context.Context, slots []int, had *items.Servers, lost string) (*items.Servers, error) {
	if w.Master != "" {
		client, err := w.dial(ctx, w.Addresses...)
		if err != nil {
			return nil, err
		}
		return &items.Servers{Clients: []rueidis.Client{client}}, nil
	}
	var errs []error
	apart := true
	for _, asked := range w.servers() {
		servers, err := w.ask(ctx, asked, slots, had, lost)
		if servers != nil {
			had = servers
		}
		if err == nil || errors.Is(err, limiter.ErrInvalid) || ctx.Err() != nil {
			return had, err
		}
		apart = apart && errors.Is(err, errApart)
		errs = append(errs, err)
	}
	if apart {
		return nil, fmt.Errorf("%w: the %d servers of the store are no cluster: name one of them, or sentinels with the name of the primary", limiter.ErrInvalid, len(errs))
	}
	return had, errors.Join(errs...)
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

// ask is connect by the slots that one server knows. It returns servers with an error where some of them are not reached.
func (w *way) ask(ctx context.Context, asked string, slots []int, had *items.Servers, lost string) (*items.Servers, error) {
	client, err := w.dial(ctx, asked)
	if err != nil {
		return nil, err
	}
	owners, err := w.owners(ctx, client, slots, asked)
	if err == nil && had != nil && (owners == nil) != (had.Addresses == nil) { // rule: a table has its places for as long as the process lives
		err = fmt.Errorf("%w: %s", errOther, asked)
	}
	if err == nil && owners == nil {
		return &items.Servers{Clients: []rueidis.Client{client}}, nil
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	c := &clients{way: w, had: had, made: map[string]rueidis.Client{asked: client}}
	defer c.closeUnused()
	return c.of(ctx, owners, lost)
}

// clients are those of the primaries of a cluster, while they are made.
type clients struct {
	*way

	had  *items.Servers // those that there are; nil = none
	made map[string]rueidis.Client
	used []rueidis.Client
}

// of returns the clients of owners, by place. Without had all must be reached. Else those that are not stay as they are,
// and those of other addresses than lost do, too.
func (c *clients) of(ctx context.Context, owners []string, lost string) (*items.Servers, error) {
	next := &items.Servers{Clients: make([]rueidis.Client, len(owners)), Addresses: owners}
	if c.had != nil {
		next.Clients, next.Addresses = slices.Clone(c.had.Clients), slices.Clone(c.had.Addresses)
	}
	var errs []error
	changed := c.had == nil
	for place, owner := range owners {
		if c.had != nil && (c.had.Addresses[place] != lost || owner == lost) {
			continue
		}
		client, err := c.client(ctx, owner)
		if err != nil {
			if c.had == nil {
				return nil, err
			}
			errs = append(errs, err)
			continue
		}
		next.Clients[place], next.Addresses[place], changed = client, owner, true
		c.used = append(c.used, client)
	}
	if !changed {
		return c.had, errors.Join(errs...)
	}
	return next, errors.Join(errs...)
}

// client returns the client of an address: one that there is, or a new one.
func (c *clients) client(ctx context.Context, address string) (rueidis.Client, error) {
	if c.had != nil {
		if i := slices.Index(c.had.Addresses, address); i >= 0 {
			return c.had.Clients[i], nil
		}
	}
	if client := c.made[address]; client != nil {
		return client, nil
	}
	client, err := c.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c.made[address] = client
	return client, nil
}

// closeUnused closes the clients that were made in vain.
func (c *clients) closeUnused() {
	for _, client := range c.made {
		if !slices.Contains(c.used, client) {
			client.Close()
		}
	}
}

// owners returns the addresses of the primaries of a cluster that have slots, as the server that is asked has it; nil = it
// is in no cluster.
func (w *way) owners(ctx context.Context, client rueidis.Client, slots []int, asked string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultConnectTimeout)
	defer cancel()
	info, err := client.Do(ctx, client.B().Info().Section("cluster").Build()).ToString()
	switch {
	case err != nil:
		return nil, told(asked, err)
	case strings.Contains(info, "cluster_enabled:1"):
	case len(w.Addresses) > 1:
		return nil, fmt.Errorf("%w: %s", errApart, asked)
	default:
		return nil, nil
	}
	ranges, err := client.Do(ctx, client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return nil, told(asked, err)
	}
	owners, found, err := readSlots(ranges, slots, asked)
	if err == nil {
		w.mu.Lock()
		w.found = found
		w.mu.Unlock()
	}
	return owners, err
}

// told is an error of a server that is asked where a table is.
func told(asked string, err error) error {
	if answer, ok := rueidis.IsRedisErr(err); ok {
		return answered(asked, answer)
	}
	return fmt.Errorf("the server of the store at %s does not tell where the table is: %w", asked, err)
}

// readSlots reads the answer to CLUSTER SLOTS: the addresses of the primaries that have slots, and those of all
// servers.
//
// https://valkey.io/commands/cluster-slots
func readSlots(ranges []rueidis.RedisMessage, slots []int, asked string) (owners, all []string, err error) {
	owners = make([]string, len(slots))
	for _, r := range ranges {
		parts, err := r.ToArray()
		if err != nil || len(parts) < 3 {
			return nil, nil, fmt.Errorf("the servers of a slot of the cluster are %d parts: %w", len(parts), cmp.Or(err, errors.ErrUnsupported))
		}
		low, err := parts[0].AsInt64()
		high, err2 := parts[1].AsInt64()
		if err := errors.Join(err, err2); err != nil {
			return nil, nil, err
		}
		for i := range parts[2:] {
			address, err := readServer(parts[2+i], asked)
			if err != nil {
				return nil, nil, err
			}
			for place, slot := range slots {
				if i == 0 && low <= int64(slot) && int64(slot) <= high {
					owners[place] = address
				}
			}
			if !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	if place := slices.Index(owners, ""); place >= 0 {
		return nil, nil, fmt.Errorf("no server of the cluster has slot %d", slots[place])
	}
	return owners, all, nil
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
