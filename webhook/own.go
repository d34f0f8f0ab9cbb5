package webhook

import (
	"io/fs"
	"slices"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// LoadFS compiles the tables of a cluster's own, files *.yaml and *.yml of a folder with any number each. They are asked after those that
// ship, in the order of their files: their defaults see what was filled in, and what any table refuses is refused. Every mistake of every
// file comes back at once; with one of severity Error there are no tables.
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

// LoadFile compiles the tables of a file that has no others beside it.
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

// with gives the table with those of its kind among a cluster's own, which are asked after it.
func (t *Table) with(own []*Table) *Table {
	next := *t
	for _, table := range own {
		if table.Kind == t.Kind {
			next.own = append(slices.Clip(next.own), table)
		}
	}
	return &next
}

// fillsIn says whether a cluster's own tables fill anything in.
func (t *Table) fillsIn() bool {
	for _, own := range t.own {
		if len(own.defaults) > 0 || len(own.groups) > 0 {
			return true
		}
	}
	return false
}

// all are the table and those asked after it.
func (t *Table) all() []*Table { return append([]*Table{t}, t.own...) }

// Rows counts the table's rows.
func (t *Table) Rows() int {
	return len(t.match) + len(t.bounds) + len(t.defaults) + len(t.validations) + len(t.includes) + len(t.warnings) + len(t.groups)
}
