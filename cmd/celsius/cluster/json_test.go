package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestReadersOfJSON checks that object files in JSON are read as JSON, not as YAML.
func TestReadersOfJSON(t *testing.T) {
	t.Parallel()
	const job = `{"kind": "Job", "metadata": {"name": "j", "annotations": {"a": "\ud83d\ude00"}}, "spec": {"minAvailable": 9007199254740993}}`
	for name, c := range map[string]struct {
		text string
		want int    // number of objects
		err  string // a part of the error message
	}{
		"an emoji as two escapes": {job, 1, ""},
		"tabs":                    {strings.ReplaceAll(job, ", ", "\n\t,\n\t"), 1, ""},
		"several":                 {job + "\n" + job + "\n---\n# none\n---\nkind: Job\n", 3, ""},
		"a list":                  {"[" + job + "]", 0, "document 1: json: cannot unmarshal array"},
		"another kind":            {job + "\n---\nkind: Pod\n", 0, `document 2: it is of kind "Pod", want Job`},
		"a duplicate key":         {`{"kind": "Job", "kind": "Job"}`, 0, "document 1: line 1, column 17: duplicate key"},
	} {
		file := filepath.Join(t.TempDir(), "objects.json")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		docs, err := readDocuments(&cobra.Command{}, file, "Job")
		if text := fmt.Sprint(err); len(docs) != c.want || (text == "<nil>") != (c.err == "") || !strings.Contains(text, c.err) {
			t.Errorf("%s: got %d, %v; want %d, %q", name, len(docs), err, c.want, c.err)
		}
		for _, d := range docs {
			checkRead(t, name, d)
		}
		// The API server decides whether this is a policy.
		if text, err := policyOf(file); c.want == 1 && (err != nil || !strings.Contains(string(text), `"a": "\ud83d\ude00"`)) {
			t.Errorf("%s: got %s, %v", name, text, err)
		}
	}
}

// checkRead checks that a document with fields has the same text and the same number as in the file.
func checkRead(t *testing.T, name string, d document) {
	t.Helper()
	if len(d.object.Object) == 1 { // it has only the kind
		return
	}
	text, err := d.object.MarshalJSON()
	if a := d.object.GetAnnotations()["a"]; err != nil || a != "😀" || !bytes.Contains(text, []byte("9007199254740993")) {
		t.Errorf("%s: got %q, %s, %v", name, a, text, err)
	}
}
