package store

import (
	"bufio"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// catalogs has one file for each dialect: the objects that the migrations create. A test writes
// the files from a migrated database.
//
//go:embed catalog
var catalogs embed.FS

// Object is an object of the database that the migrations create: a column, an index, a
// constraint, a function or a trigger.
type Object struct {
	// Name has the kind of the object and its name.
	Name string
	// Form is the type of a column, whether an index is unique, or the hash of a function.
	Form string
}

// String returns the line of the object in a catalog.
func (o Object) String() string { return strings.TrimSpace(o.Name + ": " + o.Form) }

// Catalog returns the objects that a database of this version has.
func (s *Store) Catalog() ([]Object, error) {
	file, err := catalogs.Open("catalog/" + s.dialect.Name + ".txt")
	if err != nil {
		return nil, fmt.Errorf("read catalog: %w", err)
	}
	defer file.Close()
	var all []Object
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, form, _ := strings.Cut(lines.Text(), ":")
		all = append(all, Object{Name: name, Form: strings.TrimSpace(form)})
	}
	return all, nil
}

// Objects returns the statement that reads the objects of the database.
func (s *Store) Objects(found func(Object)) sqldb.Stmt {
	return twoColumns(s.stmt("Catalog"), func(name, form string) {
		found(Object{Name: strings.ReplaceAll(name, ":", ""), Form: form})
	})
}

// Missing compares the objects of a database with its catalog. It returns the objects of the
// catalog that are missing or differ, each with the form that was found instead. Other objects
// of the database do not matter.
func Missing(catalog, found []Object) map[Object]string {
	forms := map[string][]string{}
	for _, o := range found {
		forms[o.Name] = append(forms[o.Name], o.Form)
	}
	missing := map[Object]string{}
	for _, o := range catalog {
		if !slices.Contains(forms[o.Name], o.Form) {
			missing[o] = strings.Join(forms[o.Name], ", ")
		}
	}
	return missing
}
