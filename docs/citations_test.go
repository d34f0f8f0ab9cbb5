package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Comments and data cite a page as docs/PAGE.md, and a heading of it after a comma.
var (
	cited        = regexp.MustCompile(`\bdocs/([a-z0-9/-]+\.md)`)
	citedHeading = regexp.MustCompile(`^, ([A-Za-z].*)`)
)

// elsewhere are citations of documents that are no part of the repository, which nobody could follow.
var elsewhere = regexp.MustCompile(`\bbehaviour (section )?[0-9]|\bcorpus (section )?[0-9]|\bpolicy-schema\b|\bDESIGN\b|\bSTYLE\b|` +
	`\bfield-20[0-9]{2}|\b[Pp]ains? [0-9]|\buser-pains\b|\bbuilding-blocks\b|\bvolcano-(behaviour|eviction|flows)\b|\btraces README\b|` +
	`\b[Tt]he design('s|\b)|\b[Ss]tyle guide\b`)

// TestCitations follows what Go files, data and pages cite.
func TestCitations(t *testing.T) {
	pages := map[string][]string{}
	for name, text := range textsOf(t, ".md") {
		if page, ok := strings.CutPrefix(name, "docs/"); ok {
			pages[page] = headings(text)
		}
	}
	followed := 0
	for name, text := range textsOf(t, ".go", ".yaml", ".txtar", ".md", ".html", ".conf") {
		if name == "docs/citations_test.go" {
			continue
		}
		followed += len(cited.FindAllString(text, -1))
		for _, wrong := range wrongCitations(text, pages) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	if followed < 50 {
		t.Errorf("%d citations found: their form has changed", followed)
	}
}

// TestWrongCitations shows what is wrong.
func TestWrongCitations(t *testing.T) {
	pages := map[string][]string{"a.md": {"A", "A heading", "rows"}}
	for text, want := range map[string]int{
		"// see docs/a.md":                                  0,
		"// (docs/a.md, A heading).":                        0,
		"// (docs/a.md, A\n// heading).":                    0,
		"// docs/a.md, rows; docs/a.md, A heading":          0,
		"// as docs/a.md, docs/a.md and README.md tell":     0,
		"// docs/b.md":                                      1,
		"// docs/a.md, A headline":                          1,
		"// docs/a.md, Other; docs/b.md":                    2,
		"// behaviour 7.4, corpus 3.10 and policy-schema S": 3,
		"// its behaviour is designed":                      0,
	} {
		if got := wrongCitations(text, pages); len(got) != want {
			t.Errorf("%q: %q, want %d mistakes", text, got, want)
		}
	}
}

// wrongCitations names those of a text that lead nowhere. pages has the headings of each page.
func wrongCitations(text string, pages map[string][]string) []string {
	var wrong []string
	for _, old := range elsewhere.FindAllString(text, -1) {
		wrong = append(wrong, "cites "+old+", which no reader has: cite a page of docs by its heading")
	}
	text = lineStart.ReplaceAllString(text, " ")
	for _, at := range cited.FindAllStringSubmatchIndex(text, -1) {
		page, rest := text[at[2]:at[3]], citedHeading.FindStringSubmatch(text[at[1]:])
		known, ok := pages[page]
		if !ok {
			wrong = append(wrong, "cites docs/"+page+", which is not there")
			continue
		}
		if rest == nil || strings.HasPrefix(rest[1], "docs/") {
			continue
		}
		if !slices.ContainsFunc(known, func(heading string) bool { return beginsWith(rest[1], heading) }) {
			wrong = append(wrong, "cites docs/"+page+", "+rest[1][:min(len(rest[1]), 40)]+": there is no such heading")
		}
	}
	return wrong
}

// lineStart is where a comment goes on in the next line.
var lineStart = regexp.MustCompile(`\n[ \t]*(//|#)[ \t]*`)

// beginsWith says whether a text begins with a heading, as whole words.
func beginsWith(text, heading string) bool {
	rest, ok := strings.CutPrefix(text, heading)
	return ok && (rest == "" || !wordStart.MatchString(rest))
}

var wordStart = regexp.MustCompile(`^([a-zA-Z0-9]|[ -][a-z])`)

var headingLine = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)

func headings(text string) []string {
	var out []string
	for _, m := range headingLine.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// textsOf reads the repository's files of some kinds, by their path.
func textsOf(t *testing.T, kinds ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".ci" || path == "bin" {
			return fs.SkipDir
		}
		if entry.IsDir() || !slices.Contains(kinds, filepath.Ext(path)) {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}
