//go:build mutants

package mutants_test

// auditStreamRules are the rules of audit events that are read for an archive.
func auditStreamRules() []mutant {
	return in("catalog", []mutant{
		{name: "what was left out once stays out", file: "auditahead.go", found: "TestAuditStreamOfAWindowThatIsFull"},
		{
			name: "a window is cut only where one alone has too many events", file: "auditstream.go", found: "TestAuditStreamOfAWindowThatIsFull",
			without: "default:",
		},
	})
}
