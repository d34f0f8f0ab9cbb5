package webhook

import (
	"io/fs"
	"slices"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// LoadFS compiles a cluster's own tables: files *.yaml and *.yml of a folder, each with any number of tables. They run after the built-in
// tables, in the order of the files. Their defaults see what earlier tables filled in, and any table can refuse an object. LoadFS returns
// the mistakes of all files at once. If one has severity Error, it returns no tables.
func LoadFS(fsys fs.FS) (tables []*Table, issues source.Issues) {
	unread := source.ReadFolder(fsys, func(name string, data []byte) {
		found, wrong := compileFile(name, data)
		tables, issues = append(tables, found...), append(issues, wrong...)
	})
	if issues = append(issues, unread...); issues.Err() == nil {
		issues = append(issues, unknownNames(tables)...)
	}
	if len(tables) == 0 && issues.Err() == nil {
		issues = append(issues, source.Issue{
			Message: "the folder of rules of admission holds none",
			Hint:    "put a file *.yaml of kind AdmissionRules or ResourceGroups there, or leave the folder out",
		})
	}
	if issues.Err() != nil {
		return nil, issues
	}
	return tables, issues
}

// LoadFile compiles the tables of a single file.
func LoadFile(name string, data []byte) (tables []*Table, issues source.Issues) {
	if tables, issues = compileFile(name, data); issues.Err() == nil {
		issues = append(issues, unknownNames(tables)...)
	}
	if issues.Err() != nil {
		return nil, issues
	}
	return tables, issues
}

func compileFile(name string, data []byte) (tables []*Table, issues source.Issues) {
	docs, issues := source.Parse(name, data)
	for _, doc := range docs {
		table, wrong := Load(doc)
		issues = append(issues, wrong...)
		if table != nil {
			tables = append(tables, table)
		}
	}
	return tables, issues
}

// with returns a copy of the table that also runs the tables of its kind from own, after its own rows.
func (t *Table) with(own []*Table) *Table {
	next := *t
	for _, table := range own {
		if table.Kind == t.Kind {
			next.own = append(slices.Clip(next.own), table)
		}
	}
	return &next
}

// fillsIn reports whether the cluster's own tables have defaults.
func (t *Table) fillsIn() bool {
	for _, own := range t.own {
		if len(own.defaults) > 0 || len(own.groups) > 0 {
			return true
		}
	}
	return false
}

// all returns the table and the tables that run after it.
func (t *Table) all() []*Table { return append([]*Table{t}, t.own...) }

// Rows returns the number of the table's rows.
func (t *Table) Rows() int {
	return len(t.match) + len(t.bounds) + len(t.defaults) + len(t.validations) + len(t.includes) + len(t.warnings) + len(t.groups)
}
