package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/dynamo"
)

// Store says which store has the buckets.
type Store struct {
	Type     StoreType
	Embedded Embedded
	DynamoDB DynamoDB
	Valkey   Valkey
}

// StoreType is the kind of a store.
type StoreType string

// The kinds of stores.
const (
	StoreEmbedded StoreType = "embedded"
	StoreDynamoDB StoreType = "dynamodb"
	StoreValkey   StoreType = "valkey"
)

// Embedded is the store for one node.
type Embedded struct {
	Data       string // a directory, relative to the working directory of the program; "" = memory only; default ""
	MaxBuckets int    // 1 to 1,000,000,000; default 0: as many as the memory has room for; bounds also the memory that decides by limiter.Local
	NewData    bool   // makes an empty data file where the one of Data is missing; set by the program's flags only
}

func (s *Store) schema() yamlcfg.Schema {
	return keys(
		key("type", "in the program, or for a fleet [on DynamoDB](#a-fleet-on-dynamodb) or [on Valkey or Redis](valkey.md)", yamlcfg.Enum(&s.Type, StoreEmbedded, StoreDynamoDB, StoreValkey)),
		key("embedded", "the embedded store", keys(
			key("data", "[directory](#a-data-directory) for buckets, stored limits, entities, audit and usage, relative to the working directory; `\"\"` = memory only", yamlcfg.Text(&s.Embedded.Data)),
			key("max_buckets", "a full bucket counts as none; beyond it new keys [share buckets](#memory). With another store it bounds buckets of `local`", yamlcfg.Integer(&s.Embedded.MaxBuckets, 1, 1_000_000_000)),
		)),
		key("dynamodb", "the DynamoDB store", s.DynamoDB.schema()),
		key("valkey", "[store on a Valkey or Redis server](valkey.md)", yamlcfg.Confidential{Schema: s.Valkey.schema()}),
	)
}

// DynamoDB is the store for a fleet.
type DynamoDB struct {
	Table       string // 3 to 255 letters, digits, '_', '-' and '.'; default "ratelimit"
	Region      string // "" = the environment's, as for every AWS program; default ""
	Endpoint    string // a URL; "" = the endpoint of the region; default ""
	CreateTable bool   // creates a missing table, at a local endpoint only; default false
	// MaxClockOffset is how far the dates of replies may be from this machine's clock, 1 s to 24 h.
	// 0 = [dynamo.DefaultMaxClockOffset].
	MaxClockOffset time.Duration
}

var (
	tableName  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)
	regionName = regexp.MustCompile(`^[a-zA-Z0-9-]{0,63}$`)
)

// Check reports the first setting that cannot be used, with its key; nil when there is none. It
// makes no connection. A DynamoDB from [Load] passes it unless it was changed since.
func (c *DynamoDB) Check() error {
	faults := c.faults()
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("store.dynamodb.%s: %s", faults[0].key, faults[0].text)
}

// fault is a mistake in the value of a key.
type fault struct{ key, text string }

func (c *DynamoDB) faults() []fault {
	var faults []fault
	add := func(key, format string, args ...any) {
		faults = append(faults, fault{key, fmt.Sprintf(format, args...)})
	}
	if !tableName.MatchString(c.Table) {
		add("table", "must be 3 to 255 letters, digits, '_', '-' and '.', not %q", yamlcfg.Shorten(c.Table, yamlcfg.MaxQuoted))
	}
	if !regionName.MatchString(c.Region) {
		add("region", `must be the name of a region, such as eu-central-1, or "" for that of the environment, not %q`, yamlcfg.Shorten(c.Region, yamlcfg.MaxQuoted))
	}
	switch {
	case !isEndpoint(c.Endpoint):
		given := fmt.Sprintf("not %q", yamlcfg.Shorten(c.Endpoint, yamlcfg.MaxQuoted))
		if strings.Contains(c.Endpoint, "@") { // the text before it may be a password
			given = "without a user"
		}
		add("endpoint", `must be a URL of scheme, host and port, such as http://127.0.0.1:8000, or "" for that of the region, %s`, given)
	case c.CreateTable && !dynamo.IsLocalEndpoint(c.Endpoint):
		add("create_table", "tables are created at a local endpoint only, such as endpoint: http://127.0.0.1:8000: on AWS create the table before, and leave this out")
	}
	return faults
}

func isEndpoint(endpoint string) bool {
	if endpoint == "" {
		return true
	}
	u, err := url.Parse(endpoint)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Path == "" || u.Path == "/")
}

// schema checks the settings against each other too.
func (c *DynamoDB) schema() yamlcfg.Schema {
	return keys(
		key("table", "the table", yamlcfg.Text(&c.Table)),
		key("region", "`\"\"` = of the environment", yamlcfg.Text(&c.Region)),
		key("endpoint", "`\"\"` = of the region", yamlcfg.Text(&c.Endpoint)),
		key("create_table", "creates a missing table, only at an endpoint on this machine, a private address or a name without a domain", yamlcfg.Bool(&c.CreateTable)),
		key("max_clock_offset", "largest offset of a reply's date that is [trusted](#a-fleet-on-dynamodb); AWS accepts no call beyond the default", yamlcfg.Duration(&c.MaxClockOffset, time.Second, 24*time.Hour)),
	).Then(func(n yamlcfg.Node, _ bool) {
		for _, f := range c.faults() {
			n.FailAt(f.key, "%s", f.text)
		}
	})
}
