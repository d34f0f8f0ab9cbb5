package conformance

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

//go:embed stubs.yaml
var stubsFile []byte

// stubs returns tables for plugins that Volcano's own tests register, as far as they exist: their rows, and their texts.
func stubs() (tables map[string]*rules.Table, texts map[string]string, err error) {
	docs, issues := source.Parse("stubs.yaml", stubsFile)
	if err := issues.Err(); err != nil {
		return nil, nil, err
	}
	tables, texts = map[string]*rules.Table{}, map[string]string{}
	for _, f := range docs[0].Root.Fields(nil, &issues) {
		tables[f.Name] = rules.ReadTable(f.Value, f.Name, policy.Shape(), nil, &issues)
		text, err := source.Write([]source.Entry{{Name: "inline", Value: f.Value}})
		if err != nil {
			return nil, nil, fmt.Errorf("stubs.yaml: %w", err)
		}
		texts[f.Name] = string(text)
	}
	return tables, texts, issues.Err()
}

// withStubs inserts the stubs that a converted policy names as its own tables.
func (r *Runner) withStubs(text []byte) []byte {
	out := string(text)
	for name, stub := range r.stubs {
		entry := "    - name: " + name + "\n"
		out = strings.ReplaceAll(out, entry, entry+"      "+strings.ReplaceAll(strings.TrimSpace(stub), "\n", "\n      ")+"\n")
	}
	return []byte(out)
}
