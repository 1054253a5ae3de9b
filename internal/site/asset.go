package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/ui"
)

// asset is a file that pages load.
type asset struct {
	kind    string
	content []byte
}

// borrowed are the files of the dashboard that the pages use for a common look.
var borrowed = []string{"css/base.css", "theme.js", "icon.svg"}

var assetKinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// loadAssets collects the files under a name that changes with any of them, so that
// browsers may cache them.
func (s *site) loadAssets() error {
	s.assets = map[string]asset{}
	for _, name := range borrowed {
		if err := s.addAsset(ui.Assets(), name, name); err != nil {
			return err
		}
	}
	entries, err := fs.ReadDir(own, "assets")
	if err != nil {
		return fmt.Errorf("load style of documentation: %w", err)
	}
	for _, e := range entries {
		if err := s.addAsset(own, "assets/"+e.Name(), e.Name()); err != nil {
			return err
		}
	}
	s.version = fingerprint(s.assets)
	return nil
}

func (s *site) addAsset(from fs.FS, file, name string) error {
	content, err := fs.ReadFile(from, file)
	if err != nil {
		return fmt.Errorf("load style of documentation: %w", err)
	}
	s.assets[name] = asset{kind: assetKinds[path.Ext(name)], content: content}
	return nil
}

func fingerprint(assets map[string]asset) string {
	var names []string
	for name := range assets {
		names = append(names, name)
	}
	slices.Sort(names)
	sum := sha256.New()
	for _, name := range names {
		sum.Write([]byte(name))
		sum.Write(assets[name].content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// serveAsset serves the file with a name that starts with the version.
func (s *site) serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	version, name, _ := strings.Cut(name, "/")
	file, ok := s.assets[name]
	if !ok || version != s.version {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	write(w, file.kind, file.content)
}
