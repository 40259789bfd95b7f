package config_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/config"
)

// Load reports all mistakes at once, with their places and corrections.
func Example() {
	_, err := config.Parse("ratelimit.yaml", []byte(`
limits:
  system: {rpm: 600, tpm: {rate: 100/minute, brust: 200}}
domains:
- domain: api
  rules:
  - match: {user: "*"}
    entity: "user/{user}"
    resource: all
    consume: {rpm: many}
`), nil)
	fmt.Println(err)
	// Output:
	// ratelimit.yaml:3: limits.system.rpm: must be a rate, such as 100/minute, 5/30s or 1000/day, or unlimited: a rate needs a period: write 600/minute
	// ratelimit.yaml:3: limits.system.tpm.brust: unknown key "brust"; did you mean "burst"? (known here: rate, quota, resets, zone, first_day, in_flight, max_time, burst, max_debt, budget)
	// ratelimit.yaml:10: domains[0].rules[0].consume.rpm: must be a number, hits, price, or {hits: 2.5}, not the text "many"
}

// The configuration that comes with the program, to try things out, needs no file.
func ExampleLoad() {
	c, err := config.Load("", config.Options{Demo: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Server.GRPC.Address, c.Decision.Timeout)
	for _, domain := range c.Rules.Domains() {
		fmt.Println(domain.Name(), len(domain.Rules()))
	}
	// Output:
	// 0.0.0.0:8081 15ms
	// llm-gateway 8
}
