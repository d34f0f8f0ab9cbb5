package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/language"
)

// declaring lists the files that declare the fields and functions of the language.
var declaring = []string{
	"../language/fields.go", "../language/nodefields.go", "../language/namespaces.go", "../language/nearby.go",
	"../language/images.go", "../language/volumes.go", "../language/members.go", "../language/functions.go",
	"../language/strategy.go", "../language/allocation.go", "../language/fragments.go", "../language/waiting.go",
	"../language/rivals.go", "../language/claims.go", "../language/sharetree.go", "../language/budgets.go", "../language/unavailable.go",
	"../language/buckets.go", "../language/numa.go", "../language/answers.go",
}

// otherWords lists names of fields that also have other meanings: roots and owners, keys of a document, resources, and sites.
var otherWords = []string{
	"task", "job", "queue", "node", "namespace", "request", "name", "spec", "status", "cpu", "memory", "pods",
	"allocatable", "preemptable", "reclaimable", "weight", "tasks", "mode",
}

// objectTypes lists the functions that return the types of objects, to which fields lead.
var objectTypes = []string{
	"TaskType", "JobType", "RoleType", "QueueType", "QueueSpecType", "NodeType", "TaintType", "GPUType", "ClusterType", "NamespaceType",
	"QuotaType", "NodeGroupsType",
}

// reasoned lists the other places with such a word, each with the reason.
var reasoned = map[string]string{
	"../language/dictionary.go labels":  "the declaration of how labels are numbered, which names the field that it is of",
	"typicaltasks.go workload":          "what the accounting function says that it reads",
	"typicaltasks.go gpus":              "what the accounting function says that it reads",
	"typicaltasks.go gpuModel":          "what the accounting function says that it reads",
	"hdrf.go allocated":                 "an argument of the accounting function",
	"quotatree.go parent":               "an argument of the accounting function",
	"quotatree.go capability":           "an argument of the accounting function, and a field that it gives",
	"quotatree.go deserved":             "an argument of the accounting function, and a field that it gives",
	"quotatree.go guarantee":            "an argument of the accounting function",
	"treeplaces.go capability":          "an argument of the accounting function",
	"treeplaces.go deserved":            "an argument of the accounting function",
	"treeplaces.go guarantee":           "an argument of the accounting function",
	"../action/place.go volumes":        "the reason of a wait",
	"../language/native.go Member.Name": "finds the amounts of a node that a field is declared with",
	"../session/queues.go Member.Name":  "writes a path as an author does",
}

// Declarations decide what may be cached. No other code decides by the name of a field, or by the type of object that it leads to.
func TestNoFieldIsKnownByName(t *testing.T) {
	names := map[string]bool{}
	for _, o := range language.Objects() {
		for _, m := range o.Members {
			names[m.Name] = !slices.Contains(otherWords, m.Name)
		}
	}
	found := map[string]bool{}
	for _, pattern := range []string{"*.go", "../action/*.go", "../language/*.go", "../session/*.go", "../verdict/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || slices.Contains(declaring, file) {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				word := known(n, names)
				if word == "" {
					return true
				}
				if found[file+" "+word] = true; reasoned[file+" "+word] == "" {
					t.Errorf("%s: %s: say what follows from a field where it is declared, and ask dependency.go", set.Position(n.Pos()), word)
				}
				return true
			})
		}
	}
	for place := range reasoned {
		if !found[place] {
			t.Errorf("%s is not there any more: leave it out of the table", place)
		}
	}
}

// known returns the name of a field in a node of a syntax tree, or "".
func known(n ast.Node, names map[string]bool) string {
	switch x := n.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && names[text] {
			return text
		}
	case *ast.SelectorExpr:
		if of, ok := x.X.(*ast.SelectorExpr); ok && x.Sel.Name == "Name" && of.Sel.Name == "Member" {
			return "Member.Name"
		}
	case *ast.CallExpr:
		f, ok := x.Fun.(*ast.SelectorExpr)
		if !ok || f.Sel.Name != "IsExactType" {
			return ""
		}
		of, ok := x.Args[0].(*ast.CallExpr)
		if !ok {
			return ""
		}
		name := ""
		switch fun := of.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if slices.ContainsFunc(objectTypes, func(of string) bool { return strings.EqualFold(of, name) }) {
			return name
		}
	}
	return ""
}
