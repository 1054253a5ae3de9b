// Command gen writes the manual pages of the program into a directory.
package main

import (
	"fmt"
	"os"

	"github.com/perdure/perdure/internal/cli"
	"github.com/perdure/perdure/internal/man"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen <directory>")
		os.Exit(2)
	}
	names, err := man.Write(os.Args[1], cli.Commands(), cli.Version())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
	fmt.Println(len(names), "pages")
}
