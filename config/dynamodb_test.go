package config_test

import (
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

func TestCheckDynamoDB(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings config.DynamoDB
		want     string // a part of the error; "" = none
	}{
		{"of the region", config.DynamoDB{Table: "ratelimit", Region: "eu-central-1"}, ""},
		{"of the environment", config.DynamoDB{Table: "a.b-c_1"}, ""},
		{"local", config.DynamoDB{Table: "ratelimit", Endpoint: "http://127.0.0.1:8000", CreateTable: true}, ""},
		{"in a container beside", config.DynamoDB{Table: "ratelimit", Endpoint: "http://dynamodb:8000/", CreateTable: true}, ""},
		{"an endpoint within AWS", config.DynamoDB{Table: "ratelimit", Endpoint: "https://vpce-1.dynamodb.eu-central-1.vpce.amazonaws.com"}, ""},
		{"no table", config.DynamoDB{}, `store.dynamodb.table: must be 3 to 255`},
		{"a short table", config.DynamoDB{Table: "ab"}, `not "ab"`},
		{"a long table", config.DynamoDB{Table: strings.Repeat("t", 256)}, "must be 3 to 255"},
		{"an ARN", config.DynamoDB{Table: "arn:aws:dynamodb:us-east-1:1:table/t"}, "must be 3 to 255"},
		{"a region that is a URL", config.DynamoDB{Table: "ratelimit", Region: "http://x"}, "store.dynamodb.region"},
		{"an endpoint without a scheme", config.DynamoDB{Table: "ratelimit", Endpoint: "localhost:8000"}, "store.dynamodb.endpoint"},
		{"an endpoint with a password", config.DynamoDB{Table: "ratelimit", Endpoint: "http://a:b@localhost"}, "store.dynamodb.endpoint"},
		{"an endpoint with a path", config.DynamoDB{Table: "ratelimit", Endpoint: "http://localhost/x"}, "store.dynamodb.endpoint"},
		{"a table on AWS", config.DynamoDB{Table: "ratelimit", CreateTable: true}, "store.dynamodb.create_table: tables are created at a local endpoint only"},
		{"a table on AWS by its endpoint", config.DynamoDB{Table: "ratelimit", Endpoint: "https://dynamodb.eu-central-1.amazonaws.com", CreateTable: true}, "store.dynamodb.create_table"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.settings.Check()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
