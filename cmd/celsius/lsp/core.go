package lsp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/cmd/celsius/schemas"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
	"github.com/celsius-scheduler/celsius/webhook"
)

// Core answers questions about texts. It is immutable and safe to share.
type Core struct {
	dialect *policy.Dialect
	shipped map[string]*rules.Table
	schemas map[string]*schemas.Schema
}

// NewCore creates a Core for the languages of this version. An error is a mistake of a declaration or of a built-in file.
func NewCore() (*Core, error) {
	dialect, err := policy.NewDialect(policy.Verbs(), policy.Vocabulary(), policy.AccountingFunctions())
	if err != nil {
		return nil, fmt.Errorf("language server: %w", err)
	}
	shipped, issues := policy.Shipped()
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("language server: %w", err)
	}
	all, err := schemas.All()
	if err != nil {
		return nil, fmt.Errorf("language server: %w", err)
	}
	return &Core{dialect: dialect, shipped: shipped, schemas: all}, nil
}

// checker checks documents of one kind.
type checker struct {
	group, kind string
	// one checks one document. file checks a file that contains only documents of this kind.
	one  func(doc *source.Document) source.Issues
	file func(name string, data []byte) source.Issues
}

const rulesGroup = "rules.celsius.dev"

func (c *Core) checkers() []checker {
	issuesOf := func(name string, data []byte) source.Issues { _, issues := webhook.LoadFile(name, data); return issues }
	table := func(doc *source.Document) source.Issues { _, issues := webhook.Load(doc); return issues }
	return []checker{
		{"scheduling.celsius.dev", policyKind, func(doc *source.Document) source.Issues {
			_, issues := c.dialect.Load(doc)
			return issues
		}, nil},
		{rulesGroup, policy.TableKind, c.dialect.LoadTable, nil},
		{rulesGroup, "JobPlugin", func(doc *source.Document) source.Issues {
			_, issues := jobplugin.Load(doc)
			return issues
		}, func(name string, data []byte) source.Issues {
			_, _, issues := jobplugin.LoadFile(name, data)
			return issues
		}},
		{rulesGroup, "StateMachine", func(doc *source.Document) source.Issues {
			_, issues := statemachines.Load(doc)
			return issues
		}, func(name string, data []byte) source.Issues {
			_, issues := statemachines.LoadFile(name, data)
			return issues
		}},
		{rulesGroup, "AdmissionRules", table, issuesOf},
		{rulesGroup, "ResourceGroups", table, issuesOf},
	}
}

// checkerOf returns the checker for a document, by its kind and by the group of its apiVersion if present. It returns nil for other kinds.
func (c *Core) checkerOf(doc *source.Document) *checker {
	kind, _ := doc.Root.Get("kind").Any().(string)
	version, _ := doc.Root.Get("apiVersion").Any().(string)
	group, _, _ := strings.Cut(version, "/")
	for _, k := range c.checkers() {
		if k.kind == kind && (group == k.group || group == "") {
			return &k
		}
	}
	return nil
}

// ours matches a text that does not parse but contains documents of our kinds.
var ours = regexp.MustCompile(
	`(?m)^\s*[{]?\s*["']?apiVersion["']?\s*:\s*["']?(scheduling|rules)\.celsius\.dev/`)

// Check returns all mistakes in documents of our kinds. If the file contains any, it also returns mistakes of YAML. For other files it
// returns nothing. It checks each document separately, as the commands `check` do: a policy can only use built-in tables and its own.
func (c *Core) Check(file, text string) source.Issues {
	if !strings.Contains(text, "celsius.dev") && !strings.Contains(text, "kind") {
		return nil
	}
	docs, issues := source.Parse(file, []byte(text))
	var found []*checker
	for _, d := range docs {
		found = append(found, c.checkerOf(d))
	}
	if !slices.ContainsFunc(found, func(k *checker) bool { return k != nil }) {
		if len(issues) > 0 && ours.MatchString(text) {
			return issues
		}
		return nil
	}
	if whole := found[0]; whole != nil && whole.file != nil && !slices.ContainsFunc(found, func(k *checker) bool {
		return k == nil || k.kind != whole.kind
	}) {
		return whole.file(file, []byte(text))
	}
	for i, d := range docs {
		if found[i] != nil {
			issues = append(issues, found[i].one(d)...)
		}
	}
	issues.Sort()
	return issues
}

// diagnostics converts issues into the form of the protocol.
func diagnostics(t *Text, issues source.Issues) []Diagnostic {
	out := []Diagnostic{}
	for _, i := range issues {
		d := Diagnostic{Severity: severityError, Source: "celsius", Message: i.Message}
		if i.Severity == source.Warning {
			d.Severity = severityWarning
		}
		if i.Hint != "" {
			d.Message += "; " + i.Hint
		}
		switch {
		case i.Line > 0:
			d.Range = t.spread(i.Line, i.Column, max(i.Width, 1))
		case i.Path != "":
			d.Message = i.Path + ": " + d.Message
		}
		out = append(out, d)
	}
	return out
}
