//go:build archive

package lambda_test

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"io"
	"slices"
	"testing"
)

// maxBootstrap bounds the bytes read of an archive: 256 MiB, which is above the maximum of
// Lambda.
const maxBootstrap = 256 << 20

// An archive has one file, which the runtime of Lambda can start: named bootstrap, executable, for
// the processor, and without a loader or libraries.
func TestArchives(t *testing.T) {
	for name, machine := range map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64} {
		t.Run(name, func(t *testing.T) {
			archive, err := zip.OpenReader("../../bin/lambda-" + name + ".zip")
			if err != nil {
				t.Fatalf("%v; `make lambda` builds it", err)
			}
			defer func() { _ = archive.Close() }()
			if len(archive.File) != 1 || archive.File[0].Name != "bootstrap" {
				t.Fatalf("it has %d files, the first is %s; want bootstrap alone", len(archive.File), archive.File[0].Name)
			}
			if mode := archive.File[0].Mode(); mode.Perm()&0o111 != 0o111 || !mode.IsRegular() {
				t.Errorf("bootstrap has the mode %v; anyone must be able to execute it", mode)
			}
			program := parsed(t, archive.File[0])
			libraries, err := program.ImportedLibraries()
			if err != nil {
				t.Fatal(err)
			}
			loaded := slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
			if program.Machine != machine || loaded || len(libraries) > 0 {
				t.Errorf("it is for %v, with the libraries %q, by a loader: %t; want %v alone", program.Machine, libraries, loaded, machine)
			}
		})
	}
}

// parsed reads a program.
func parsed(t *testing.T, file *zip.File) *elf.File {
	t.Helper()
	r, err := file.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, maxBootstrap))
	if err != nil {
		t.Fatal(err)
	}
	program, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return program
}
