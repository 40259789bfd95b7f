package upgrade_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/internal/dynamotest"
	"github.com/ratelimit/ratelimit/test/envoytest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

// programs are the paths of the program in both versions.
type programs struct{ old, present string }

// buildPrograms builds the program of both versions, unless there is one of the present
// version to test.
func buildPrograms(t *testing.T) programs {
	t.Helper()
	p := programs{old: filepath.Join(t.TempDir(), "ratelimit-1"), present: os.Getenv(envoytest.ProgramVariable)}
	source := t.TempDir()
	if err := unpack("testdata/version1.tar.gz", source); err != nil {
		t.Fatal(err)
	}
	build(t, source, p.old)
	if p.present == "" {
		p.present = filepath.Join(t.TempDir(), "ratelimit")
		root, err := envoytest.Root()
		if err != nil {
			t.Fatal(err)
		}
		build(t, root, p.present)
	}
	return p
}

// build compiles without -trimpath, with which nothing that other tests compiled could be used.
func build(t *testing.T, source, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/ratelimit")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", source, err, out)
	}
}

// maxSource bounds each file of the archive, in bytes.
const maxSource = 1 << 20

// unpack unpacks an archive into a directory.
func unpack(archive, dir string) error {
	file, err := os.Open(archive) // #nosec G304 -- of the tests
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !filepath.IsLocal(h.Name) {
			err = fmt.Errorf("%s is outside of the archive", h.Name)
		}
		if err == nil && h.Typeflag == tar.TypeReg {
			err = unpackFile(r, filepath.Join(dir, h.Name))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
}

func unpackFile(r io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxSource))
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// start starts a program on a configuration.
func start(t *testing.T, program, config string) *replica {
	t.Helper()
	t.Setenv(envoytest.ProgramVariable, program)
	return newReplica(t, envoytest.StartService(t, config, "", ""))
}

// command runs a command of a program to its end, and returns its output and exit code.
func command(ctx context.Context, program string, args ...string) (string, int, error) {
	cmd := exec.CommandContext(ctx, program, args...) // #nosec G204 -- of the tests
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), failed.ExitCode(), nil
	}
	return string(out), 0, err
}
