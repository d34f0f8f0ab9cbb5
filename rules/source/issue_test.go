package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIssueInOneLine(t *testing.T) {
	for want, i := range map[string]Issue{
		"a.yaml:3:7: spec.x: is wrong; be right": {File: "a.yaml", Line: 3, Column: 7, Path: "spec.x", Message: "is wrong", Hint: "be right"},
		"a.yaml:3:7: is wrong":                   {File: "a.yaml", Line: 3, Column: 7, Message: "is wrong"},
		"a.yaml: is wrong":                       {File: "a.yaml", Message: "is wrong"},
		"line 3:7: is wrong":                     {Line: 3, Column: 7, Message: "is wrong"},
		"x: is wrong":                            {Path: "x", Message: "is wrong"},
		"a.yaml: warning: x: is odd":             {File: "a.yaml", Path: "x", Severity: Warning, Message: "is odd"},
		"two lines; two hints":                   {Message: "two\nlines", Hint: "two\r\nhints"},
	} {
		if got := i.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCaretsStandUnderThePlace(t *testing.T) {
	for _, c := range []struct {
		name, source  string
		column, width int
		want          []string
	}{
		{"ascii", "a: node.idel", 9, 4, []string{" 7 | a: node.idel", "   |         ^~~~"}},
		{"one wide", "a: node", 4, 1, []string{" 7 | a: node", "   |    ^"}},
		{"tab", "\ta:\tb", 5, 1, []string{" 7 | \ta:\tb", "   | \t  \t^"}},
		{"wide characters", "日本: x本y", 6, 2, []string{" 7 | 日本: x本y", "   |       " + " ^~~"}},
		{"combining", "e\u0301: x", 5, 1, []string{" 7 | e\u0301: x", "   |    ^"}},
		{"invisible", "a\u200bb: x", 3, 1, []string{" 7 | a\ufffdb: x", "   |   ^"}},
		{"behind the end", "a:", 3, 5, []string{" 7 | a:", "   |   ^"}},
		{"past the end", "a: b", 4, 9, []string{" 7 | a: b", "   |    ^"}},
		{"empty line", "", 1, 1, []string{" 7 |", "   | ^"}},
	} {
		lines := strings.Split(Issue{Line: 7, Column: c.column, Width: c.width, Source: c.source, Message: "m"}.Render(), "\n")
		want := append([]string{"line 7:" + string(rune('0'+c.column)) + ": m"}, append(c.want, "")...)
		for k := range lines {
			lines[k] = strings.TrimRight(lines[k], " ")
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestLongLinesAreCut(t *testing.T) {
	source := strings.Repeat("a", 500) + "HERE" + strings.Repeat("b", 500)
	got := Issue{Line: 1, Column: 501, Width: 4, Source: source, Message: "m"}.Render()
	want := "line 1:501: m\n" +
		" 1 | …" + strings.Repeat("a", 80) + "HERE" + strings.Repeat("b", 116) + "…\n" +
		"   |  " + strings.Repeat(" ", 80) + "^~~~\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestIssuesKeepNoLongLines checks that an issue keeps only the shown part of a long line. Thousands of mistakes in one line of several MB
// must not take gigabytes.
func TestIssuesKeepNoLongLines(t *testing.T) {
	items := strings.Repeat(`{"name": "worker", "cpu": "500m"}, `, 10_000)
	docs, issues := Parse("pods.json", []byte(`{"items": [`+items+`"last"]}`))
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	got := docs[0].Root.Get("items").Items(&issues)[9_000].Get("cpu").Issuef("", "is wrong")
	if len(got.Source) > windowBefore+windowAfter+2 {
		t.Errorf("the issue keeps %d bytes", len(got.Source))
	}
	whole := got
	whole.Source, whole.Skipped = `{"items": [`+items+`"last"]}`, 0
	if diff := cmp.Diff(whole.Render(), got.Render()); diff != "" {
		t.Errorf("-of the whole line +of the part\n%s", diff)
	}
}

func TestIssueWithoutPlaceIsOneLine(t *testing.T) {
	if got := NewText("1 +").Issue(3, 1, "unexpected end", "").Render(); got != "unexpected end\n" {
		t.Errorf("got %q", got)
	}
}

func TestIssuesSortAndSplit(t *testing.T) {
	is := Issues{
		{File: "b", Line: 1, Column: 1, Message: "1"},
		{File: "a", Line: 2, Column: 1, Message: "2", Severity: Warning},
		{File: "a", Line: 1, Column: 9, Message: "3"},
		{File: "a", Line: 1, Column: 9, Message: "4"},
		{File: "a", Line: 1, Column: 3, Message: "5"},
	}
	is.Sort()
	order := func(is Issues) string {
		var b strings.Builder
		for _, i := range is {
			b.WriteString(i.Message)
		}
		return b.String()
	}
	if got := order(is) + " " + order(is.Errors()) + " " + order(is.Warnings()); got != "53421 5341 2" {
		t.Errorf("got %s", got)
	}
	if is.Err() == nil || is.Warnings().Err() != nil || Issues(nil).Err() != nil {
		t.Error("only errors make an error")
	}
	if got, want := is.Errors()[:2].Error(), strings.TrimSuffix(is[0].Render()+is[1].Render(), "\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Error.String() + " " + Warning.String(); got != "error warning" {
		t.Errorf("got %q", got)
	}
}

// TestIssuesShownAreBounded checks that a text shows at most MostShown issues: errors before warnings, each in the order found. Then it
// tells how many more issues exist.
func TestIssuesShownAreBounded(t *testing.T) {
	var is Issues
	for n := range MostShown + 2 {
		is = append(is, Issue{Message: fmt.Sprintf("warning %d", n), Severity: Warning}, Issue{Message: fmt.Sprintf("error %d", n)})
	}
	for name, c := range map[string]struct {
		is           Issues
		shown        []string
		hidden, last string
	}{
		"errors hide warnings": {is, []string{"error 0", "error 999"}, "warning 0", "… and 2 more errors, 1002 more warnings"},
		"warnings alone":       {is.Warnings(), []string{"warning: warning 0", "warning: warning 999"}, "warning 1000", "… and 2 more warnings"},
		"few errors": {
			append(is.Warnings(), is.Errors()[:2]...), []string{"warning: warning 997", "error 1"}, "warning 998", "… and 4 more warnings",
		},
		"one more":    {is.Errors()[:MostShown+1], []string{"error 999"}, "error 1000", "… and 1 more error"},
		"just enough": {is.Errors()[:MostShown], []string{"error 0"}, "…", "error 999"},
	} {
		lines := strings.Split(c.is.Error(), "\n")
		for _, want := range c.shown {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: %q is not shown:\n%s", name, want, c.is.Error())
			}
		}
		if strings.Contains(c.is.Error(), c.hidden) || lines[len(lines)-1] != c.last || len(lines) > MostShown+1 {
			t.Errorf("%s: %d lines, the last %q, want %q, and no %q", name, len(lines), lines[len(lines)-1], c.last, c.hidden)
		}
	}
}
