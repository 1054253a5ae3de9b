package site

import (
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// source is the URL of files that the documentation mentions but does not contain.
const source = "https://github.com/perdure/perdure/blob/main/"

// resolve returns the target of a link of a page: pages without their extension, images
// unchanged, and other files of the repository at their source. External links, and links
// within the page, stay unchanged.
func (s *site) resolve(p *page, link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return link
	}
	target := path.Join("docs", path.Dir(p.file), u.Path)
	fragment := ""
	if u.Fragment != "" {
		fragment = "#" + u.EscapedFragment()
	}
	file, inside := strings.CutPrefix(target, "docs/")
	if target == "docs" {
		file, inside = "README.md", true
	}
	if inside {
		for _, name := range []string{file, path.Join(file, "README.md")} {
			if to := s.pages[name]; to != nil {
				return p.to(to.url) + fragment
			}
		}
		if _, err := fs.Stat(s.files, file); err == nil {
			return p.to(file)
		}
	}
	return source + target + fragment
}

// to returns the relative address of an address from the root.
func (p *page) to(address string) string { return p.Root() + address }

// Root returns the relative path from the page to the root of the site.
func (p *page) Root() string {
	if depth := strings.Count(p.url, "/"); depth > 0 {
		return strings.Repeat("../", depth)
	}
	return "./"
}
