package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
)

// build is the build information of the program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			return a.show(b, func(w io.Writer) {
				fmt.Fprintf(w, "perdure %s (%s)\n", b.Version, strings.Join(b.details(), ", "))
			})
		},
	}
}

// details returns the revision, if it is known, the version of Go and the platform.
func (b build) details() []string {
	rest := []string{b.Go, b.Platform}
	if b.Revision == "" {
		return rest
	}
	revision := b.Revision[:min(len(b.Revision), 12)]
	if b.Modified {
		revision += " modified"
	}
	return append([]string{"revision " + revision}, rest...)
}

// readBuild returns the version of the source tree, and what the compiler recorded. Its
// version of the main module is not used: without a tag it is a pseudo-version.
func readBuild() build {
	b := build{Version: perdure.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
