package config

import (
	"fmt"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
	"github.com/ratelimit/ratelimit/pkg/valkey"
)

// Valkey is the store for a fleet on a Valkey or Redis server.
type Valkey struct {
	Addresses []string // host:port of the server, of servers of a cluster, or of sentinels with Master; none = 127.0.0.1:6379; default none
	Master    string   // the name that sentinels have for the server; "" = Addresses are of the server; default ""
	Database  int      // 0 to 1,023; default 0
	Table     string   // 1 to 64 letters, digits, '_', '-' and '.'; default "ratelimit"
	Create    bool     // creates a missing table at the start; default false
	OnLoss    OnLoss   // default LossRefuse
	Usage     bool     // counts usage with each take; default true

	Durability Durability // default DurableServer

	Username             string // "" = default; default ""
	PasswordFile         string // "" = Password; default ""
	SentinelUsername     string // "" = default; default ""
	SentinelPasswordFile string // "" = SentinelPassword; default ""
	TLS                  ClientTLS

	Password         string // "" = none; set by the environment only
	SentinelPassword string // "" = none; set by the environment only
}

// OnLoss says what becomes of a table that the server has lost.
type OnLoss string

// The settings for a table that was lost.
const (
	LossRefuse   OnLoss = "refuse"   // the store is unavailable until there is a table again
	LossRecreate OnLoss = "recreate" // a new table takes its place, without limits and entities that were stored
)

// Durability says when a change of records, or an exact write of a bucket, is answered.
type Durability string

// The settings for a change.
const (
	DurableServer  Durability = "server"  // when the server has it
	DurableReplica Durability = "replica" // when a replica has it too, or after 50 ms
)

// Check reports the first setting that cannot be used, with its key; nil when there is none. It
// makes no connection. A Valkey from [Load] passes it unless it was changed since.
func (c *Valkey) Check() error {
	faults := c.faults()
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("store.valkey.%s: %s", faults[0].key, faults[0].text)
}

// faults are the mistakes. Their texts repeat no value, which may be a password.
func (c *Valkey) faults() []fault {
	var faults []fault
	for _, a := range c.Addresses {
		if !yamlcfg.IsAddress(a) {
			faults = append(faults, fault{"addresses", "must be hosts and ports, such as 127.0.0.1:6379, without a scheme, a user and a password"})
			break
		}
	}
	if !valkey.IsName(c.Table) {
		faults = append(faults, fault{"table", "must be 1 to 64 letters, digits, '_', '-' and '.'"})
	}
	if c.Master != "" && len(c.Addresses) == 0 {
		faults = append(faults, fault{"master", "needs addresses: those of the sentinels, such as [sentinel-0:26379, sentinel-1:26379]"})
	}
	const needsMaster = "is of sentinels, and needs master: the name that they have for the server"
	if c.SentinelUsername != "" && c.Master == "" {
		faults = append(faults, fault{"sentinel_username", needsMaster})
	}
	if c.SentinelPasswordFile != "" && c.Master == "" {
		faults = append(faults, fault{"sentinel_password_file", needsMaster})
	}
	return faults
}

// schema checks the settings against each other too.
func (c *Valkey) schema() yamlcfg.Schema {
	return keys(
		key("addresses", "of the server, or of servers of [a cluster](valkey.md#a-cluster); with `master`, of sentinels", yamlcfg.List[string]{Out: &c.Addresses, Item: yamlcfg.Address}),
		key("master", "name that sentinels have for the server; `\"\"` = no sentinels", yamlcfg.Text(&c.Master)),
		key("database", "number of the database", yamlcfg.Integer(&c.Database, 0, 1023)),
		key("table", "the table: its keys begin with `{table`", yamlcfg.Text(&c.Table)),
		key("create", "creates a missing table at the start; without it `ratelimit valkey create` does", yamlcfg.Bool(&c.Create)),
		key("on_loss", "where the server has lost the table: `refuse` is unavailable until one exists, `recreate` makes one without stored limits", yamlcfg.Enum(&c.OnLoss, LossRefuse, LossRecreate)),
		key("durability", "`replica`: changes of limits and other exact writes wait for a replica, [takes do not](valkey.md#what-a-failover-costs)", yamlcfg.Enum(&c.Durability, DurableServer, DurableReplica)),
		key("usage", "counts [usage](valkey.md#memory) with each decision", yamlcfg.Bool(&c.Usage)),
		key("username", "user of the server; `\"\"` = `default`", yamlcfg.Text(&c.Username)),
		key("password_file", "file with the password, read for each connection; `\"\"` = the variable `RATELIMIT_VALKEY_PASSWORD`", yamlcfg.Text(&c.PasswordFile)),
		key("sentinel_username", "user of sentinels", yamlcfg.Text(&c.SentinelUsername)),
		key("sentinel_password_file", "file with its password, read for each connection", yamlcfg.Text(&c.SentinelPasswordFile)),
		key("tls", "TLS to the server and sentinels; `{}` = with the authorities of the system", c.TLS.schema("store.valkey.tls", "the server")),
	).Then(func(n yamlcfg.Node, sound bool) {
		c.TLS.Enabled = c.TLS.Enabled || n.Given("tls")
		if !sound { // an address that is wrong is ""
			return
		}
		for _, f := range c.faults() {
			n.FailAt(f.key, "%s", f.text)
		}
	})
}
