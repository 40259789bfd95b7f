package operate_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/dynamofake"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/pagetest"
	"github.com/ratelimit/ratelimit/test/kit/valkeytest"
)

// fleetPorts are the ports that the pages of a fleet write: those of the table and of the HTTP
// sides of three replicas.
var fleetPorts = []string{"8000", "8080", "8180", "8280"}

// inForceWithin is how soon a change is in force on every replica.
const inForceWithin = 5 * time.Second

// fleet is a place with a table, and the programs that the commands of a page meet.
type fleet struct {
	*place

	owner     *testing.T        // programs run until it ends
	ports     map[string]string // of this machine, by the port that pages write
	table     fleetTable
	processes map[string]*process
}

// fleetTable is a table that replicas share.
type fleetTable struct {
	store        string // its configuration; "" = that of the page
	port         string // of DynamoDB Local
	cut, connect func()
	aggregator   bool                     // usage needs one
	shown        func(text string) string // an output as pages have it
}

// onDynamoDB returns a table on DynamoDB Local.
func onDynamoDB(t *testing.T) fleetTable {
	t.Helper()
	proxy := dynamotest.NewProxy(t, dynamotest.Start(t).URL, nil)
	endpoint, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	return fleetTable{
		port: endpoint.Port(), cut: func() { proxy.SetPlan(noAnswers) }, connect: func() { proxy.SetPlan(nil) },
		aggregator: true, shown: func(text string) string { return text },
	}
}

// onValkey returns a table on a Valkey or Redis server.
func onValkey(t *testing.T) fleetTable {
	t.Helper()
	server := valkeytest.Start(t)
	proxy := valkeytest.NewProxy(t, server.Address)
	return fleetTable{
		store: fmt.Sprintf("store: {type: valkey, valkey: {table: tour, addresses: [%q], create: true}}", proxy.Address),
		cut:   func() { proxy.Point("") }, connect: func() { proxy.Point(server.Address) },
		shown: func(text string) string { return asStore(text, "dynamodb") },
	}
}

// newFleet makes a place beside a table, with the files of the pages; no program runs
// yet.
func newFleet(t *testing.T, table fleetTable, pages ...string) *fleet {
	t.Helper()
	f := &fleet{place: newPlace(t), owner: t, ports: map[string]string{}, table: table, processes: map[string]*process{}}
	f.ports[fleetPorts[0]] = table.port
	for _, port := range fleetPorts[1:] {
		f.ports[port] = freePort(t)
	}
	for _, page := range pages {
		f.files(t, page)
	}
	return f
}

// files writes the files that a page names, for this machine.
func (f *fleet) files(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := namedBlock.FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Errorf("%s has no files", path)
	}
	for _, block := range blocks {
		text := f.local(block[2])
		if f.table.store != "" {
			text = pageTable.ReplaceAllLiteralString(text, f.table.store)
		}
		f.write(t, block[1], text)
	}
}

// runPage runs the commands of a page, and the steps that readers make by hand.
func (f *fleet) runPage(t *testing.T, path string) {
	t.Helper()
	steps := map[string]func(*testing.T){
		"start a service":     func(t *testing.T) { f.serve(t, "service", "ratelimit.yaml", "8080") },
		"stop the service":    func(*testing.T) { f.processes["service"].kill() },
		"start the fleet":     f.start,
		"start an aggregator": f.aggregate,
		"cut the table off":   func(*testing.T) { f.table.cut() },
		"connect the table":   func(*testing.T) { f.table.connect() },
	}
	pagetest.Check(t, path, *update, func(command string) string {
		if step, byHand := steps[command]; byHand {
			step(t)
			return ""
		}
		began := time.Now()
		text := stable(command, f.table.shown(f.public(f.shell(t, f.local(command)))))
		if took := time.Since(began); strings.Contains(command, "timeout 5 ") && took > inForceWithin {
			t.Errorf("%s took %v, want at most %v", command, took, inForceWithin)
		}
		return text
	})
}

// noAnswers is an outage of the table.
func noAnswers(dynamofake.Call) dynamofake.Fault {
	return dynamofake.Fault{Kind: dynamofake.ServerError}
}

// start starts three replicas, as scripts/fleet.sh does. Commands ask the first.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	if f.processes[fleetPorts[1]] != nil {
		return // of the page before
	}
	for _, port := range fleetPorts[1:] {
		f.serve(t, port, "fleet.yaml", port)
	}
	f.place = f.with("RATELIMIT_SERVER=unix://" + filepath.Join(f.dir, "run-"+fleetPorts[1], "admin.sock"))
}

// serve starts a replica with a configuration, and waits until it serves.
func (f *fleet) serve(t *testing.T, name, config, port string) {
	t.Helper()
	run := filepath.Join(f.dir, "run-"+name)
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	serving := func(line string) bool { return strings.Contains(line, "msg=serving") }
	args := []string{"serve", "--config", config, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:" + f.ports[port]}
	f.keep(name, f.with("RATELIMIT_RUN_DIR="+run).startProcess(t, serving, args...))
}

// aggregate starts the writer of the fleet's usage.
func (f *fleet) aggregate(t *testing.T) {
	t.Helper()
	if f.processes["aggregator"] != nil || !f.table.aggregator {
		return // of the page before, or none
	}
	reading := func(line string) bool { return strings.Contains(line, "http=") }
	f.keep("aggregator", f.startProcess(t, reading, "aggregate", "--config", "fleet.yaml", "--http-address", "127.0.0.1:0", "--flush", "200ms"))
}

// keep has a program run until the last page is done.
func (f *fleet) keep(name string, p *process) {
	f.processes[name] = p
	f.owner.Cleanup(p.kill)
}

// pageTable is the store of a fleet in a page.
var pageTable = regexp.MustCompile(`(?m)^store: \{type: dynamodb.*$`)

var portNumber = regexp.MustCompile(`\b8[0-2][08]0\b`)

// local puts the ports of this machine into a text of a page.
func (f *fleet) local(text string) string {
	return portNumber.ReplaceAllStringFunc(text, func(port string) string {
		if here := f.ports[port]; here != "" {
			return here
		}
		return port
	})
}

// public is the inverse of local.
func (f *fleet) public(text string) string {
	for public, here := range f.ports {
		if here == "" {
			continue
		}
		text = regexp.MustCompile(`\b`+here+`\b`).ReplaceAllString(text, public)
	}
	return text
}

// freePort returns a port that no program listens on.
func freePort(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	_, port, err := net.SplitHostPort(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
