package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases.
var version = ""

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), versionLine())
			return failed(err)
		},
	}
}

// versionLine is the output of version and --version.
func versionLine() string {
	return fmt.Sprintf("ratelimit %s %s %s/%s\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// programVersion is the release, or the version that the Go toolchain recorded.
func programVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version, info)
}

// versionOf returns the version that the linker set. Without one it is that of the module, which
// go install and go build record, or "dev". info may be nil.
func versionOf(linked string, info *debug.BuildInfo) string {
	switch {
	case linked != "":
		return linked
	case info == nil || info.Main.Version == "" || info.Main.Version == "(devel)":
		return "dev"
	default:
		return info.Main.Version
	}
}
