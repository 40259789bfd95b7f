package engine_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
