package command

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases.
var version = ""

// NewVersion returns the command version.
func NewVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), VersionLine())
			return Failed(err)
		},
	}
}

// VersionLine is the output of version and --version.
func VersionLine() string {
	return fmt.Sprintf("ratelimit %s %s %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Version is the release, or the version that the Go toolchain recorded.
func Version() string {
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
