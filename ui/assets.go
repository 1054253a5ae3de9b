package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// assets are the files that pages load. Their paths contain a version that changes with any
// of them. So a browser may cache them indefinitely and never mixes versions.
type assets struct {
	version string
	files   map[string]asset
	// modules are the names of all modules. Pages load them concurrently rather than one after
	// the other.
	modules []string
}

type asset struct {
	kind  string
	plain []byte
	// gzipped returns the compressed file, which is compressed at the first call. It is nil
	// for a small file.
	gzipped func() []byte
}

// worthGzip is the minimum size of a file that is sent compressed.
const worthGzip = 1 << 10

// embedded returns the files of this program, which are read once.
var embedded = sync.OnceValues(func() (*assets, error) { return loadAssets(files, "assets") })

func loadAssets(from fs.FS, dir string) (*assets, error) {
	a := &assets{files: map[string]asset{}}
	sum := sha256.New()
	err := fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		sum.Write([]byte(name))
		sum.Write(content)
		name = strings.TrimPrefix(name, dir+"/")
		a.files[name] = newAsset(name, content)
		if path.Ext(name) == ".mjs" {
			a.modules = append(a.modules, name)
		}
		return nil
	})
	a.version = hex.EncodeToString(sum.Sum(nil)[:8])
	return a, err
}

// kinds has fixed content types, because the defaults depend on the host.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func newAsset(name string, content []byte) asset {
	a := asset{kind: kinds[path.Ext(name)], plain: content}
	if a.kind == "" {
		a.kind = "text/plain; charset=utf-8"
	}
	if len(content) >= worthGzip {
		a.gzipped = sync.OnceValue(func() []byte { return compress(content) })
	}
	return a
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(content) // writing to a buffer never fails
	_ = w.Close()
	return b.Bytes()
}

// serve serves the file with a name that starts with the version.
func (a *assets) serve(w http.ResponseWriter, r *http.Request, name string) {
	version, name, _ := strings.Cut(name, "/")
	file, ok := a.files[name]
	if !ok || version != a.version {
		w.Header().Set("Cache-Control", "no-store")
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", file.kind)
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Vary", "Accept-Encoding")
	content := file.plain
	if file.gzipped != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content = file.gzipped()
		header.Set("Content-Encoding", "gzip")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
