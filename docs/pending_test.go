package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPending holds the page of causes to the scenarios that it tells of: each has a section, whose lines are printed by it, and in each
// the job that waited starts, or is told that it would.
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
		for _, remedy := range regexp.MustCompile("`celsius what-if ([^`]+)`").FindAllStringSubmatch(section, -1) {
			if want := asStep(remedy[1]); !hasStep(string(text), want) {
				t.Errorf("%s has no step %q, which is celsius what-if %s", link[1], strings.Join(want, " "), remedy[1])
			}
		}
		_, after, _ := strings.Cut(string(text), "-- remedied --")
		starts := regexp.MustCompile(`job default/train would start (now|once)|default/train .* \d pods? bound|\nbind +default/train-`)
		if !starts.MatchString(after) {
			t.Errorf("%s: the job does not start:\n%s", link[1], after)
		}
	}
	for _, name := range scenarios {
		if !told[filepath.ToSlash(name)] {
			t.Errorf("%s has no section", name)
		}
	}
}

// asStep is a what-if command of the page as the words of a step of a scenario.
func asStep(command string) (out []string) {
	words := strings.Fields(command)
	for i := 0; i+1 < len(words); i += 2 {
		switch value := words[i+1]; words[i] {
		case "--delete":
			out = append(out, "delete="+strings.TrimPrefix(value, "job/"))
		case "--add-nodes":
			out = append(out, "nodes="+value)
		case "--policy":
			out = append(out, "policy=")
		case "-f":
			out = append(out, "FILE")
		}
	}
	return out
}

// hasStep reports whether a scenario has a step what-if with exactly these words; a file may have any name.
func hasStep(scenario string, want []string) bool {
	for line := range strings.Lines(scenario) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "whatif" {
			continue
		}
		for i, word := range words {
			if name, _, ok := strings.Cut(word, "="); !ok {
				words[i] = "FILE"
			} else if name == "policy" {
				words[i] = "policy="
			}
		}
		got, all := words[1:], slices.Clone(want)
		slices.Sort(got)
		slices.Sort(all)
		if slices.Equal(got, all) {
			return true
		}
	}
	return false
}

// TestComplaints holds the table of what others were asked for to what it names: 25 complaints, each with a scenario, a test or a benchmark
// that is there.
func TestComplaints(t *testing.T) {
	page, err := os.ReadFile("pending.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| complaint | asked there | seen here |\n| --- | --- | --- |\n")
	if !found {
		t.Fatal("there is no table of complaints")
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 25 {
		t.Errorf("%d complaints, want 25", len(rows))
	}
	link := regexp.MustCompile(`\[([^]]+)\]\(\.\./([^)]+\.(?:txtar|go))\)`)
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 || !strings.Contains(cells[1], "/issues/") {
			t.Errorf("not a complaint with what was asked and where it is seen: %s", row)
			continue
		}
		named := link.FindAllStringSubmatch(cells[2], -1)
		if len(named) == 0 {
			t.Errorf("%s: neither a scenario nor a test is named", cells[0])
		}
		for _, n := range named {
			text, err := os.ReadFile("../" + n[2])
			if err != nil {
				t.Errorf("%s: %v", cells[0], err)
			} else if strings.HasSuffix(n[2], ".go") && !strings.Contains(string(text), "\nfunc "+n[1]+"(") {
				t.Errorf("%s: %s has no %s", cells[0], n[2], n[1])
			}
		}
	}
}
