package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build is what version prints.
type build struct {
	Version  string `json:"version"`            // "(devel)" unless built from a module's version
	Commit   string `json:"commit,omitempty"`   // of the source, if it was built in a repository
	Modified bool   `json:"modified,omitempty"` // there were changes besides
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// newVersion is the verb version.
func newVersion() *cobra.Command {
	var output outputFlag
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := readBuild()
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), b)
			}
			fmt.Fprintln(cmd.OutOrStdout(), b)
			return nil
		},
	}
	output.add(cmd)
	return cmd
}

// String is the build in a line.
func (b build) String() string {
	source := b.Version
	if b.Commit != "" {
		source += " " + b.Commit
	}
	if b.Modified {
		source += " (modified)"
	}
	return fmt.Sprintf("dueq %s %s %s", source, b.Go, b.Platform)
}

// readBuild reads what the Go tool has noted in the program.
func readBuild() build {
	b := build{Version: "(unknown)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
