package chart_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

// The containers of a fleet with an aggregator run on a table: the aggregator's has the arguments,
// the environment and the files of the chart, answers its probe, and writes the usage of requests
// to the service's.
func TestAggregatorRuns(t *testing.T) {
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	v := with(modes(t)["fleet"], "store.dynamodb", values{"table": table, "endpoint": server.URL})
	program, objects := os.Getenv(envoytest.ProgramVariable), rendered(t, v)
	files := configFiles(t, objects)
	files["ratelimit.yaml"] = strings.Replace(files["ratelimit.yaml"], "    endpoint:", "    create_table: true\n    endpoint:", 1) // as the stack does
	service := run(t, program, objects)
	if err := service.ask(7); err != nil {
		t.Fatal(err)
	}

	added := rendered(t, with(v, "aggregator", values{"enabled": true, "flush": "100ms", "keep": values{"hour": "720h"}}))
	for name := range objects {
		if _, is := objects[name].(*core.ConfigMap); !is {
			delete(added, name)
		}
	}
	aggregator := contain(t, program, added, "--http-address", "127.0.0.1:0")
	aggregator.begin()
	await(t, "the aggregator", func() error {
		found := regexp.MustCompile(`http[="]+:?"?(127\.0\.0\.1:\d+)`).FindStringSubmatch(aggregator.logged())
		if found == nil {
			return fmt.Errorf("no address in %s", aggregator.logged())
		}
		aggregator.http = found[1]
		return nil
	})
	probed(t, aggregator, added)
	await(t, "the usage", func() error { return service.lists(",7,") })
}

// probed demands that the probe of a container is answered, and that its port is the one of the
// configuration.
func probed(t *testing.T, r *running, objects map[string]any) {
	t.Helper()
	container := pod(t, objects).Spec.Containers[0]
	var configured struct {
		Server struct {
			HTTP struct {
				Address string `json:"address"`
			} `json:"http"`
		} `json:"server"`
	}
	if err := yaml.Unmarshal([]byte(configFiles(t, objects)["ratelimit.yaml"]), &configured); err != nil {
		t.Fatal(err)
	}
	probe, port := container.LivenessProbe.HTTPGet, container.Ports[0]
	if _, listens, err := net.SplitHostPort(configured.Server.HTTP.Address); err != nil || probe.Port.StrVal != port.Name || listens != strconv.Itoa(int(port.ContainerPort)) {
		t.Errorf("the probe asks port %s, which is %d, and the process listens on %s (%v)", probe.Port.StrVal, port.ContainerPort, configured.Server.HTTP.Address, err)
	}
	if code, body, err := r.get(probe.Path); err != nil || code != http.StatusOK {
		t.Errorf("%s: got %d %s, %v", probe.Path, code, body, err)
	}
}

// ask makes requests of one key to the service.
func (r *running) ask(times int) error {
	const body = `{"domain":"api","descriptors":[{"entries":[{"key":"api_key","value":"ada"}]}]}`
	for range times {
		request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.http+"/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d\n%s", response.StatusCode, r.logged())
		}
	}
	return nil
}

// lists demands that the usage that the service lists has a text.
func (r *running) lists(want string) error {
	list := exec.CommandContext(r.t.Context(), r.process.Path, "list", "usage", "--window", "month", "-o", "csv", "--server", "unix://"+r.path("/run/ratelimit/own/admin.sock"))
	out, err := list.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		return fmt.Errorf("%w: no %s in\n%s", err, want, out)
	}
	return nil
}
