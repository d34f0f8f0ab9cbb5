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
)

// declaring are the files that declare the fields and functions of the language.
var declaring = []string{
	"fields.go", "nodefields.go", "namespaces.go", "nearby.go", "images.go", "volumes.go", "members.go", "functions.go", "strategy.go", "allocation.go",
	"fragments.go", "waiting.go", "decay.go", "claims.go", "sharetree.go",
}

// otherWords are names of fields that are words of other things, too: roots and owners, keys of a document, resources, and sites.
var otherWords = []string{
	"task", "job", "queue", "node", "namespace", "request", "name", "spec", "status", "cpu", "memory", "pods",
	"allocatable", "preemptable", "reclaimable", "weight", "tasks",
}

// objectTypes give the types of objects, which fields lead to.
var objectTypes = []string{
	"taskType", "jobType", "roleType", "queueType", "queueSpecType", "nodeType", "taintType", "gpuType", "clusterType", "namespaceType",
	"quotaType", "nodeGroupsType",
}

// reasoned are the other places where such a word stands, each with its reason.
var reasoned = map[string]string{
	"dictionary.go labels":       "the declaration of how labels are numbered, which names the field that it is of",
	"typicaltasks.go workload":   "what the accounting function says that it reads",
	"typicaltasks.go gpus":       "what the accounting function says that it reads",
	"typicaltasks.go gpuModel":   "what the accounting function says that it reads",
	"hdrf.go allocated":          "an argument of the accounting function",
	"quotatree.go parent":        "an argument of the accounting function",
	"quotatree.go capability":    "an argument of the accounting function, and a field that it gives",
	"quotatree.go deserved":      "an argument of the accounting function, and a field that it gives",
	"quotatree.go guarantee":     "an argument of the accounting function",
	"treeplaces.go capability":   "an argument of the accounting function",
	"treeplaces.go deserved":     "an argument of the accounting function",
	"treeplaces.go guarantee":    "an argument of the accounting function",
	"compile.go starving":        "the word of a mistake that is reported",
	"../action/walk.go role":     "the reason of a wait",
	"../action/place.go volumes": "the reason of a wait",
	"native.go Member.Name":      "finds the amounts of a node that a field is declared with",
	"queues.go Member.Name":      "writes a path as an author does",
}

// What may be remembered follows from declarations: nothing beside them decides by the name of a field, or by which type of object it leads to.
func TestNoFieldIsKnownByName(t *testing.T) {
	names := map[string]bool{}
	for _, o := range objects() {
		for _, m := range o.Members {
			names[m.Name] = !slices.Contains(otherWords, m.Name)
		}
	}
	found := map[string]bool{}
	for _, pattern := range []string{"*.go", "../action/*.go"} {
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

// known is the word by which a node of a syntax tree knows a field, "" for none.
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
		if of, ok := x.Args[0].(*ast.CallExpr); ok {
			if name, ok := of.Fun.(*ast.Ident); ok && slices.Contains(objectTypes, name.Name) {
				return name.Name
			}
		}
	}
	return ""
}
