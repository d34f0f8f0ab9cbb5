package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/celsius-scheduler/celsius/cmd/celsius/cluster"
)

// shownElsewhere returns the commands whose output is not in a console file or a document that a test compares. The value is the file and
// the test that check the command.
func shownElsewhere() map[string]string {
	return map[string]string{
		"celsius scheduler":        "../playground/e2e_deploy_test.go TestE2EDeploy",
		"celsius controllers":      "../playground/e2e_deploy_test.go TestE2EDeploy",
		"celsius webhook":          "../playground/e2e_deploy_test.go TestE2EDeploy",
		"celsius dashboard":        "../playground/e2e_dashboard_test.go TestE2EDashboard",
		"celsius shadow":           "../playground/e2e_shadow_test.go TestE2EShadow",
		"celsius try":              "try_test.go TestTryCommand",
		"celsius lsp":              "authoring_test.go TestLSPCommand",
		"celsius replay":           "replay_cycles_test.go TestReplay",
		"celsius support-bundle":   "cluster/bundle_test.go TestBundle",
		"celsius admission render": "admission_test.go TestAdmissionRender",
		"celsius policy bench":     "policybench_test.go TestPolicyBench",
		"celsius policy fmt":       "policyfmt_test.go TestPolicyFmt",
		"celsius policy lint":      "policylint_test.go TestPolicyLint",
		"celsius policy promote":   "cluster/promote_test.go TestShadows",
		"celsius policy revisions": "cluster/revisions_test.go TestRevisions",
		"celsius policy rollback":  "cluster/revisions_test.go TestRevisions",
		"celsius policy shadows":   "cluster/promote_test.go TestShadows",
	}
}

// programs returns the root commands by the name of the program.
func programs() map[string]*cobra.Command {
	out := map[string]*cobra.Command{"celsius": newRootCommand()}
	for _, name := range volcanosPrograms {
		out[name] = cluster.New(name, cluster.Options{})
	}
	return out
}

// consoles returns the texts that contain commands after "$ " and output that a test compares. These are all console files of testdata, and
// the console blocks of documents.
func consoles(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"testdata/*.console", "cluster/testdata/*.console"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, file := range files {
			out = append(out, read(t, file))
		}
	}
	for _, file := range comparedDocuments() {
		for _, block := range consoleBlock.FindAllStringSubmatch(read(t, filepath.Join("../..", file)), -1) {
			out = append(out, block[1])
		}
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// shownCommands returns the commands that a console shows with a successful run. A command that only fails there is not included.
func shownCommands(t *testing.T, roots map[string]*cobra.Command) map[string]bool {
	t.Helper()
	shown := map[string]bool{}
	for _, console := range consoles(t) {
		for _, block := range strings.Split("\n"+console, "\n$ ")[1:] {
			line, printed, _ := strings.Cut(block, "\n")
			words := strings.Fields(strings.TrimPrefix(line, "go run ./cmd/"))
			root := roots[words[0]]
			if root == nil || strings.Contains(printed, "[exit code ") {
				continue
			}
			if c, _, err := root.Find(words[1:]); err == nil {
				shown[c.CommandPath()] = true
			}
		}
	}
	return shown
}

// TestEveryCommandIsShown checks each command that does something. It must be in a console whose output is compared, or in shownElsewhere.
func TestEveryCommandIsShown(t *testing.T) {
	roots, elsewhere := programs(), shownElsewhere()
	shown := shownCommands(t, roots)
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		for _, c := range commands(roots[name]) {
			path := c.CommandPath()
			where, told := elsewhere[path]
			delete(elsewhere, path)
			switch {
			case !c.Runnable() || c.HasAvailableSubCommands() && path != "celsius simulate": // other such commands only list the commands below them
			case told && shown[path]:
				t.Errorf("%s is shown by a console: take it off the list", path)
			case told:
				checkNamed(t, path, where)
			case !shown[path]:
				t.Errorf("no console shows %s at work: add it to one of cluster/testdata, or name the test that looks at its output", path)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(elsewhere)) {
		t.Errorf("there is no command %s: take it off the list", path)
	}
}

// checkNamed checks that a file contains a test and that the test contains the name of the command.
func checkNamed(t *testing.T, path, where string) {
	t.Helper()
	file, test, _ := strings.Cut(where, " ")
	text := read(t, file)
	if !strings.Contains(text, "func "+test+"(") {
		t.Errorf("%s: %s has no %q", path, file, test)
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\"` \n\t,(){}", r) })
	if name := path[strings.LastIndex(path, " ")+1:]; !slices.Contains(words, name) {
		t.Errorf("%s: %s does not run it", path, file)
	}
}
