package testdb

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// MissingError reports that a database program is not installed.
type MissingError struct {
	Program  string // the missing program: "initdb"
	Install  string // the package to install: "PostgreSQL 14 or newer (…)"
	Variable string // the variable that names a server instead, if there is one
}

func (e *MissingError) Error() string {
	text := fmt.Sprintf("%s was not found: install %s, or run `make deps`", e.Program, e.Install)
	if e.Variable == "" {
		return text
	}
	return text + fmt.Sprintf(", or set %s to the URL of a server", e.Variable)
}

// lookIn returns the first directory that has all programs, or "".
func lookIn(dirs []string, programs ...string) string {
	for _, dir := range dirs {
		if dir != "" && hasAll(dir, programs) {
			return dir
		}
	}
	return ""
}

func hasAll(dir string, programs []string) bool {
	for _, p := range programs {
		info, err := os.Stat(filepath.Join(dir, p))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// newestFirst returns the directories that match the patterns, the highest version number
// in the path first.
func newestFirst(patterns ...string) []string {
	var dirs []string
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // the only error is a bad pattern
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int {
		return cmp.Compare(versionIn(b), versionIn(a))
	})
	return dirs
}

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// versionIn returns the last number in path, 0 if it has none.
func versionIn(path string) float64 {
	all := number.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	v, _ := strconv.ParseFloat(all[len(all)-1], 64) // digits always parse
	return v
}
