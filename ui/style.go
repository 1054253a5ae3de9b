package ui

import "io/fs"

// Assets returns the files of the dashboard, for other pages with the same look.
// css/base.css has the colors and plain elements; theme.js applies the chosen theme.
func Assets() fs.FS {
	sub, _ := fs.Sub(files, "assets") // the name is valid
	return sub
}
