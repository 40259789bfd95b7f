package envoytest_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(envoytest.MainOfGateways(onTable{m})) }

// onTable keeps DynamoDB Local between the tests.
type onTable struct{ m *testing.M }

func (t onTable) Run() int { return dynamotest.Main(t.m) }
