package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPending holds the page of causes to the scenarios that it tells of: each has a section, whose lines are printed by it, and in each
// the job that waited is told to start.
func TestPending(t *testing.T) {
	page, err := os.ReadFile("pending.md")
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := filepath.Glob("../engine/sim/testdata/scenarios/pending/*.txtar")
	if err != nil || len(scenarios) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	block := regexp.MustCompile("(?s)```\n(.*?)```")
	told := map[string]bool{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		link := regexp.MustCompile(`\[scenario\]\(([^)]+)\)`).FindStringSubmatch(section)
		if link == nil {
			continue
		}
		told[link[1]] = true
		text, err := os.ReadFile(link[1])
		if err != nil {
			t.Error(err)
			continue
		}
		printed := block.FindStringSubmatch(section)
		if printed == nil {
			t.Errorf("%s is not quoted", link[1])
			continue
		}
		for line := range strings.Lines(printed[1]) {
			if !strings.Contains(string(text), "\n"+line) {
				t.Errorf("%s does not print %q", link[1], line)
			}
		}
		_, after, _ := strings.Cut(string(text), "-- remedied --\n")
		if !regexp.MustCompile(`job default/train would start now|default/train .* \d pods? bound`).MatchString(after) {
			t.Errorf("%s: the job does not start:\n%s", link[1], after)
		}
	}
	for _, name := range scenarios {
		if !told[filepath.ToSlash(name)] {
			t.Errorf("%s has no section", name)
		}
	}
}
