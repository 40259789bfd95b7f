package operate_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(envoytest.Main(onTable{m})) }

// onTable runs the tests beside one DynamoDB Local.
type onTable struct{ *testing.M }

func (m onTable) Run() int { return dynamotest.Main(m.M) }
