//go:build !unix

package sqlite

// inodeOf returns false: only Linux lists the locks of files.
func inodeOf(string) (string, bool) { return "", false }
