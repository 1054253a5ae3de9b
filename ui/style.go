package ui

import "io/fs"

// Assets returns the files of the dashboard, for pages beside it that shall look
// like it: css/base.css has the colours and plain elements, theme.js sets the
// theme that was chosen.
func Assets() fs.FS {
	sub, _ := fs.Sub(files, "assets") // the name is valid
	return sub
}
