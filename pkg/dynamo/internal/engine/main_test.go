package engine_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }
