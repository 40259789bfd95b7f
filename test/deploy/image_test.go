package deploy_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// dockerfile returns the stages of a Dockerfile and the arguments before them, as BuildKit reads
// them. A warning of its linter is an error.
func dockerfile(text string) ([]instructions.Stage, []instructions.ArgCommand, error) {
	parsed, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	var warnings []error
	lint := linter.New(&linter.Config{Warn: func(rule, _, _, message string, _ []parser.Range) {
		warnings = append(warnings, fmt.Errorf("%s: %s", rule, message))
	}})
	stages, arguments, err := instructions.Parse(parsed.AST, lint)
	return stages, arguments, errors.Join(append(warnings, err)...)
}

// user is one of numbers: Kubernetes cannot see that a name is not root.
var user = regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`)

// checkImage returns the faults of a Dockerfile.
func checkImage(text string) error {
	stages, arguments, err := dockerfile(text)
	if err != nil {
		return err
	}
	if len(stages) != 2 || len(arguments) != 1 {
		return fmt.Errorf("%d stages and %d arguments before them, want 2 and 1", len(stages), len(arguments))
	}
	return errors.Join(checkBuild(&stages[0]), checkBase(&stages[1], &arguments[0]), checkFinal(&stages[1], stages[0].Name))
}

// checkBuild returns the faults of the stage that builds: it runs on the machine's own platform,
// and builds a static program for the target's.
func checkBuild(s *instructions.Stage) error {
	var faults []error
	if s.Platform != "$BUILDPLATFORM" {
		faults = append(faults, fmt.Errorf("the compiler runs on the platform %q", s.Platform))
	}
	arguments, command := map[string]bool{}, ""
	for _, c := range s.Commands {
		switch c := c.(type) {
		case *instructions.ArgCommand:
			for _, a := range c.Args {
				arguments[a.Key] = true
			}
		case *instructions.RunCommand:
			command = strings.Join(c.CmdLine, " ")
			for _, used := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(command, -1) {
				if !arguments[used[1]] {
					faults = append(faults, fmt.Errorf("%s is used and is no argument yet", used[1]))
				}
			}
		}
	}
	for _, part := range []string{"CGO_ENABLED=0", "GOOS=$TARGETOS", "GOARCH=$TARGETARCH", "-trimpath", "-buildid=", "-X github.com/ratelimit/ratelimit/internal/command.version=$VERSION", "-o /ratelimit ./cmd/ratelimit"} {
		if !strings.Contains(command, part) {
			faults = append(faults, fmt.Errorf("the build lacks %s: %s", part, command))
		}
	}
	return errors.Join(faults...)
}

// checkBase returns the faults of the base of the image: an argument that is empty by default.
func checkBase(s *instructions.Stage, argument *instructions.ArgCommand) error {
	base := argument.Args[0]
	if s.BaseName != "$"+base.Key || base.Value == nil || *base.Value != "scratch" {
		return fmt.Errorf("the base is %s, of %s", s.BaseName, argument)
	}
	return nil
}

// checkFinal returns the faults of the stage that is the image: its files come from the first one, its
// user is not root, and it starts a file that it has.
func checkFinal(s *instructions.Stage, built string) error {
	var faults []error
	copied, runs, ports, program, arguments := map[string]string{}, "", []string(nil), []string(nil), []string(nil)
	for _, c := range s.Commands {
		switch c := c.(type) {
		case *instructions.CopyCommand:
			if c.From != built || len(c.SourcePaths) != 1 {
				faults = append(faults, fmt.Errorf("%s is copied from %q, which is no stage", c.SourcePaths, c.From))
			}
			copied[c.DestPath] = c.SourcePaths[0]
			if c.Chown != "" && !user.MatchString(c.Chown) {
				faults = append(faults, fmt.Errorf("%s belongs to %s", c.DestPath, c.Chown))
			}
		case *instructions.UserCommand:
			runs = c.User
		case *instructions.ExposeCommand:
			ports = c.Ports
		case *instructions.EntrypointCommand:
			program = c.CmdLine
			if c.PrependShell {
				faults = append(faults, fmt.Errorf("%s needs a shell", program))
			}
		case *instructions.CmdCommand:
			arguments = c.CmdLine
		case *instructions.RunCommand: // it would need an emulator
			faults = append(faults, fmt.Errorf("the image's own stage runs %s", c.CmdLine))
		}
	}
	if !user.MatchString(runs) {
		faults = append(faults, fmt.Errorf("the user is %q", runs))
	}
	if !slices.Equal(ports, []string{"8080", "8081"}) { // in the parser's order
		faults = append(faults, fmt.Errorf("the ports are %q", ports))
	}
	if len(program) != 1 || copied[program[0]] != "/ratelimit" || !slices.Equal(arguments, []string{"serve"}) {
		faults = append(faults, fmt.Errorf("starts %q %q, and has %v", program, arguments, copied))
	}
	return errors.Join(faults...)
}

// The Dockerfile builds a static program for each platform, and an image that starts it without rights.
func TestImage(t *testing.T) {
	if err := checkImage(readFile(t, "Dockerfile")); err != nil {
		t.Error(err)
	}
}

// Each of these faults is seen.
func TestImageFaults(t *testing.T) {
	good := readFile(t, "Dockerfile")
	for _, change := range [][2]string{
		{"USER 65532:65532", "USER 0"},
		{"USER 65532:65532", "USER nonroot"},
		{"USER 65532:65532\n", ""},
		{`ENTRYPOINT ["/bin/ratelimit"]`, `ENTRYPOINT ["/bin/ratelimitx"]`},
		{`ENTRYPOINT ["/bin/ratelimit"]`, `ENTRYPOINT /bin/ratelimit`},
		{"COPY --from=build /ratelimit", "COPY --from=nosuch /ratelimit"},
		{"COPY --from=build /ratelimit", "COPY /ratelimit"},
		{"COPY --from=build /ratelimit", "COPY --from=build /rate"},
		{"COPY --from=build --chown=65532:65532", "COPY --from=build --chown=0:0"},
		{"--platform=$BUILDPLATFORM ", ""},
		{"CGO_ENABLED=0", "CGO_ENABLED=1"},
		{"GOARCH=$TARGETARCH ", ""},
		{"ARG TARGETARCH\n", ""},
		{"EXPOSE 8081 8080", "EXPOSE 8081"},
		{"ARG BASE=scratch", "ARG BASE"},
		{"FROM $BASE", "FROM $BASIS"},
		{"FROM $BASE", "FROM golang:1.26 AS other\nFROM $BASE"},
		{"AS build", "as build"},
		{`CMD ["serve"]`, `CMD ["--demo"]`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if text == good {
			t.Errorf("the Dockerfile lacks %q", change[0])
		}
		if checkImage(text) == nil {
			t.Errorf("%q in place of %q is not seen", change[1], change[0])
		}
	}
}
