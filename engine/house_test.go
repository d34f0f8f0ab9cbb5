package engine_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These are the limits of packages and types, without tests and generated code. The linter limits the length of functions.
const (
	mostLines   = 5000 // of a package
	mostFields  = 15   // of a struct type
	mostMethods = 40   // of a type
)

// codeLines returns limits for packages that must stay short. Blank lines and comment lines do not count.
func codeLines() map[string]int {
	return map[string]int{"engine/reference": 856} // it defines a cycle, and is read as a whole; blocked queues are a part of it
}

// exception allows something to exceed its limit, up to its present figure.
type exception struct {
	what, unit string // a package, or a type with its package; lines, lines of code, fields or methods
	figure     int
	reason     string
}

// rowOfTheState is the reason for several exceptions.
const rowOfTheState = "a field is a fact of an object that rows may read, or a count of it"

// exceptions lists what exceeds a limit today. Some figures are rounded up.
var exceptions = []exception{
	{"cmd/celsius/cluster.tool", "methods", 44, "a method is a command, or what several commands share"},
	{"cmd/celsius.simulation", "fields", 17, "a field is a flag of simulate"},
	{"crds/policy/v1alpha1.InlineTable", "fields", 28, "a field is a section of a table in the API"},
	{"crds/policy/v1alpha1.Row", "fields", 17, "a field is a key of a row in the API"},
	{"crds/policy/v1alpha1.Step", "fields", 21, "a field is a parameter of a verb in the API"},
	{"engine/action.Cycle", "methods", 46, "a method is what a verb does with a job or a task, and what it notes"},
	{"engine/action.backlog", "fields", 17, "a field is what is remembered of jobs from one cycle to the next"},
	{"engine/eviction.Search", "fields", 16, "a field is what the search remembers of a step, or of the present task"},
	{"engine/eviction.Search", "methods", 42, "a method is a step of the search for victims"},
	{"engine/explain.Cycle", "methods", 56, "a method is a question about a cycle"},
	{"engine/language", "lines", 6000, "what a policy can say, field by field and function by function, with what each reads"},
	{"engine/live", "lines", 5850, "what runs around the core, how it leaves out an object, questions, and reports of other parts"},
	{"engine/live.Options", "fields", 23, "a field is a flag"},
	{"engine/live.loop", "fields", 18, "a field is what one turn of the loop leaves for the next"},
	{"engine/live.loop", "methods", 45, "a method is what the loop does with one kind of news"},
	{"engine/live.metrics", "fields", 32, "a field is a metric"},
	{"engine/model", "lines", 8610, "the one state, and all that changes it: taking in an object fills what the rest keeps, within limits"},
	{"engine/model.Cluster", "fields", 37, "the one state; a method is what can be asked of it or done to it"},
	{"engine/model.Cluster", "methods", 115, "the one state; a method is what can be asked of it or done to it"},
	{"engine/model.Job", "fields", 41, rowOfTheState},
	{"engine/model.Nodes", "fields", 22, rowOfTheState},
	{"engine/model.Queue", "fields", 28, rowOfTheState},
	{"engine/model.Task", "fields", 50, rowOfTheState},
	{"engine/model.Template", "fields", 19, rowOfTheState},
	{"engine/model.Plan", "fields", 17, "a field is a list of what a cycle decided"},
	{"engine/model.bookkeeping", "fields", 25, "a field is an index that follows the objects"},
	{"engine/policy", "lines", 6080, "what a policy can say, verb by verb and function by function, with what each reads"},
	{"engine/policy.Attribute", "fields", 16, "a field is a property of a computed field, as declared or as compiled"},
	{"engine/policy.Policy", "fields", 17, "a field is a part of a compiled policy, or what is known of all its expressions"},
	{"engine/policy.Rule", "fields", 17, "a field is a key of a row"},
	{"engine/proof.Cycle", "methods", 45, "a method is a question about a cycle, or what it does to be answered"},
	{"engine/reference.cycle", "fields", 17, "a field is a part of the state of a cycle"},
	{"engine/reference.cycle", "methods", 48, "a method is a part of the definition of a cycle"},
	{"engine/reference/answers.Answers", "methods", 43, "a method is a question about a policy and a cluster"},
	{"engine/reference/eviction.Search", "methods", 42, "as engine/eviction.Search"},
	{"engine/session.Session", "methods", 45, "a method is a question that a verb, a report or an explanation asks"},
	{"engine/sim/manifest.ShortSpec", "fields", 19, "a field is a key of the short form"},
	{"engine/topology.Counts", "fields", 17, "a field is an index that follows the objects"},
	{"engine/topology.Counts", "methods", 47, "a method is a count that terms of affinity and spread need, or how it follows a delta"},
	{"engine/verdict.Plan", "fields", 16, "a field is a set of rows that are asked alike, or what is known of all rows"},
	{"rules.Member", "fields", 27, "a field is a property that a declaration may have"},
	{"rules.Row", "fields", 18, "a field is a key of a row"},
	{"statemachines.Pod", "fields", 16, "a field is a fact of a pod that a lifecycle may read"},
	{"statemachines/controller", "lines", 6750, "one reconciler for each kind that has a lifecycle, with limits and ends of PodGroups"},
	{"engine/sim", "lines", 5740, "what surrounds a scheduler: API server, controllers, kubelet and quotas, and the report of a run"},
	{"engine/sim.completion", "methods", 42, "a method completes one kind of object, or checks a fact that the cluster states"},
	{"engine/sim.Report", "fields", 19, "a field is a part of the report, or what a run notes to write it"},
	{"engine/sim.World", "fields", 16, "a field is what surrounds the scheduler, or an option of the simulation"},
	{"engine/sim.World", "methods", 45, "a method is what surrounds the scheduler, or what a script does by hand"},
	{"statemachines/controller.jobs", "methods", 46, "a method is an effect of the lifecycle of Jobs, or a part of one"},
	{"statemachines/controller.world", "fields", 16, "a field is what a test of the controllers plays or notes"},
	{"webhook", "lines", 5400, "one handler for each kind that is admitted, and what a request may cost"},
}

// TestHouse checks that packages and types stay within their limits, and that each exception is needed.
func TestHouse(t *testing.T) {
	for _, wrong := range overBounds(measured(t), exceptions) {
		t.Error(wrong)
	}
}

// TestOverBounds checks what overBounds reports.
func TestOverBounds(t *testing.T) {
	figures := map[figure]int{{"a", "lines"}: 5000, {"b", "lines"}: 5001, {"b.T", "fields"}: 16, {"b.T", "methods"}: 40}
	for _, c := range []struct {
		exceptions []exception
		want       int
	}{
		{nil, 2},
		{[]exception{{"b", "lines", 5001, "why"}, {"b.T", "fields", 20, "why"}}, 0},
		{[]exception{{"b", "lines", 5001, "why"}, {"b.T", "fields", 16, ""}}, 1},
		{[]exception{{"b", "lines", 5000, "why"}, {"b.T", "fields", 16, "why"}}, 1},
		{[]exception{
			{"b", "lines", 5001, "why"},
			{"b.T", "fields", 16, "why"},
			{"b.T", "methods", 41, "why"},
			{"c", "lines", 9999, "why"},
		}, 2},
	} {
		if got := overBounds(figures, c.exceptions); len(got) != c.want {
			t.Errorf("%v: %q, want %d mistakes", c.exceptions, got, c.want)
		}
	}
}

// TestLinesOfCode checks that a package that must stay short has its limit, and that other packages do not.
func TestLinesOfCode(t *testing.T) {
	long := map[figure]int{{"engine/reference", "lines of code"}: 857, {"engine/live", "lines of code"}: 4000}
	if got := overBounds(long, nil); len(got) != 1 {
		t.Errorf("%q, want one mistake", got)
	}
	if n := linesOfCode([]byte("package p\n\n\t// Why.\n\tf() // how\n")); n != 2 {
		t.Errorf("counted %d lines of code, want 2", n)
	}
}

// figure names what is counted: a package or type, and its lines, lines of code, fields or methods.
type figure struct{ what, unit string }

// overBounds returns what exceeds its limit or its exception, and the exceptions that are not needed.
func overBounds(figures map[figure]int, exceptions []exception) []string {
	bounds := map[string]int{"lines": mostLines, "fields": mostFields, "methods": mostMethods, "lines of code": math.MaxInt}
	var wrong []string
	excepted := map[figure]int{}
	for _, e := range exceptions {
		of := figure{e.what, e.unit}
		excepted[of] = e.figure
		if e.reason == "" {
			wrong = append(wrong, fmt.Sprintf("the exception of %s, %s, has no reason", e.what, e.unit))
		}
		if figures[of] <= bounds[e.unit] {
			wrong = append(wrong, fmt.Sprintf("%s has %d %s: remove its exception", e.what, figures[of], e.unit))
		}
	}
	for of, n := range figures {
		most := max(bounds[of.unit], excepted[of])
		if own, ok := codeLines()[of.what]; ok && of.unit == "lines of code" {
			most = own
		}
		if n > most {
			wrong = append(wrong, fmt.Sprintf("%s has %d %s, more than %d", of.what, n, of.unit, most))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// measured counts the lines of each package, with and without blank lines and comments. It also counts the fields and methods of each type.
func measured(t *testing.T) map[figure]int {
	t.Helper()
	figures := map[figure]int{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || name == "bin" || name != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			figures[figure{filepath.Dir(name), "lines"}] += bytes.Count(text, []byte("\n"))
			figures[figure{filepath.Dir(name), "lines of code"}] += linesOfCode(text)
			countTypes(file, filepath.Dir(name), figures)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return figures
}

// linesOfCode counts the lines that are neither blank nor a comment.
func linesOfCode(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			n++
		}
	}
	return n
}

// countTypes adds the fields and methods that a file declares.
func countTypes(file *ast.File, pkg string, figures map[figure]int) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				figures[figure{pkg + "." + receiver(d.Recv.List[0].Type), "methods"}]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if of, ok := spec.Type.(*ast.StructType); ok {
					figures[figure{pkg + "." + spec.Name.Name, "fields"}] = of.Fields.NumFields()
				}
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
