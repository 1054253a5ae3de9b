// Package docs is the documentation: pages in Markdown that read well on a forge
// and that package internal/site renders inside the product.
package docs

import "embed"

// Files has all pages and their images.
//
//go:embed *.md */*.md images
var Files embed.FS
