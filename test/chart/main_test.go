package chart_test

import (
	"os"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

func TestMain(m *testing.M) { os.Exit(envoytest.Main(m)) }
