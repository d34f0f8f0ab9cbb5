package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// TestFaultsAreHeld checks the table of reported faults. Each row must link a scenario or a test that exists. Each setting for Volcano's
// behaviour must be a param of its table, with the value that conversion writes.
func TestFaultsAreHeld(t *testing.T) {
	page, err := os.ReadFile("compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| setting for Volcano's behaviour | held by |\n| --- | --- | --- | --- | --- |\n")
	if !found {
		t.Fatal("the table is not found")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) < 14 {
		t.Errorf("%d rows, want at least 14", len(rows))
	}
	link, setting := regexp.MustCompile(`\[([^]]+)\]\(\.\./([^)]+\.(?:txtar|go))\)`), regexp.MustCompile("`(\\w+): (\\w+)`")
	settings := 0
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 5 || !strings.Contains(cells[1], "/issues/") {
			t.Errorf("the row has no issue, or not five cells: %s", row)
			continue
		}
		held := link.FindAllStringSubmatch(cells[4], -1)
		if len(held) == 0 {
			t.Errorf("%s: no scenario and no test holds it", cells[0])
		}
		for _, h := range held {
			checkHeld(t, cells[0], h[2], h[1])
		}
		s := setting.FindStringSubmatch(cells[3])
		if s == nil {
			continue
		}
		settings++
		names := regexp.MustCompile(`\b(?:overcommit|proportion|capacity|drf|gang)\b`).FindAllString(cells[3], -1)
		if len(names) == 0 {
			t.Errorf("%s: no table is named for %s", cells[0], s[0])
		}
		for _, name := range names {
			checkAsVolcano(t, name, s[1], s[2])
		}
	}
	if settings < 5 {
		t.Errorf("%d settings are checked, want at least 5", settings)
	}
}

// checkHeld reports a scenario or a test that does not exist.
func checkHeld(t *testing.T, fault, file, test string) {
	t.Helper()
	text, err := os.ReadFile("../" + file)
	if err != nil {
		t.Errorf("%s: %v", fault, err)
	} else if strings.HasSuffix(file, ".go") && !strings.Contains(string(text), "\nfunc "+test+"(") {
		t.Errorf("%s: %s has no %s", fault, file, test)
	}
}

// checkAsVolcano compares a value with the one that conversion writes.
func checkAsVolcano(t *testing.T, table, param, value string) {
	t.Helper()
	text, err := os.ReadFile("../rules/tables/" + table + ".yaml")
	if err != nil {
		t.Error(err)
		return
	}
	var of struct {
		Params map[string]struct {
			AsVolcano any `yaml:"asVolcano"`
		}
	}
	if err := yaml.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := yaml.Unmarshal([]byte(value), &want); err != nil {
		t.Fatal(err)
	}
	if got := of.Params[param].AsVolcano; got != want {
		t.Errorf("table %s: the param %s has the value %v where policies are converted, and the page states %s", table, param, got, value)
	}
}
