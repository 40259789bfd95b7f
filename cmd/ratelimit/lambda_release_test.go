//go:build release

package main

import "testing"

// The program as the runtime of Lambda starts it.
func TestLambda(t *testing.T) {
	program := bootstrap(t)
	t.Run("usage", func(t *testing.T) { testLambdaCounts(t, program) })
	t.Run("archive", func(t *testing.T) { testLambdaArchives(t, program) })
	t.Run("budgets", func(t *testing.T) { testLambdaBudgets(t, program) })
	t.Run("budgets of another home", func(t *testing.T) { testLambdaBeside(t, program) })
}
