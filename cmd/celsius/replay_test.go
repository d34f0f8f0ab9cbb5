package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// command runs the program and returns its exit code and its output.
func command(t testing.TB, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// TestReplaySkips checks that a missing corpus is not reported as a success.
func TestReplaySkips(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	for _, args := range [][]string{
		{"simulate", "conformance", absent},
		{"simulate", "trace", "openb", "--verify", "--trace", absent},
	} {
		code, out, errs := command(t, args...)
		if code != exitSkipped || out != "SKIPPED: no corpus at "+absent+"\n" || errs != "" {
			t.Errorf("%v: code %d, printed %q and %q", args, code, out, errs)
		}
	}
}

func TestReplayUsage(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"simulate", "conformance"}, exitUsage, "takes one folder"},
		{[]string{"simulate", "conformance", dir}, exitMistakes, "no case in it"},
		{[]string{"simulate", "trace", "opneb"}, exitUsage, "did you mean openb?"},
		{[]string{"simulate", "trace", "openb"}, exitUsage, "--trace DIR"},
		{[]string{"simulate", "trace", "openb", "--trace", dir, "--seeds", "9-1"}, exitUsage, "--seeds 9-1"},
		{[]string{"simulate", "trace", "openb", "--trace", dir, "--mix", "gpus=3"}, exitUsage, `"gpus=3": write PART=PERCENT`},
		{[]string{"simulate", "trace", "openb", "--trace", dir}, exitUsage, "random.yaml is wanted, and it is not there"},
		{[]string{"simulate", "trace", "openb", "--trace", dir, "--policy", filepath.Join(dir, "none.yaml")}, exitMistakes, "none.yaml"},
	} {
		code, _, errs := command(t, test.args...)
		if code != test.code || !strings.Contains(errs, test.want) {
			t.Errorf("%v: code %d, %q; want %d, %q", test.args, code, errs, test.code, test.want)
		}
	}
}

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string][]int64{"42": {42}, "1-3": {1, 2, 3}, "1, 5,7-8": {1, 5, 7, 8}} {
		got, err := parseSeeds(text)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"", "a", "3-1", "1-", "-1", "1,,2", "1-100000"} {
		if got, err := parseSeeds(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
