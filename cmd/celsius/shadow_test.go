package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestShadowRefuses checks that the command refuses wrong input before it connects to a cluster.
func TestShadowRefuses(t *testing.T) {
	t.Parallel()
	dir := files(t, map[string]string{
		"typo.conf":   "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gnag\n",
		"policy.yaml": strings.Replace(hostilePolicy, "{name: nodeorder}", "{name: nodeordr}", 1),
		"right.conf":  "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--policy", in("policy.yaml"), "--conf", in("right.conf")}, exitUsage, "--policy or --conf, not both"},
		{[]string{"--of", ""}, exitUsage, "--of is empty"},
		{[]string{"--cycles", "-1"}, exitUsage, "--cycles -1 is below 0"},
		{[]string{"--grace", "0s"}, exitUsage, "must be above 0"},
		{[]string{"-o", "yaml"}, exitUsage, `--output must be text or json, found "yaml"`},
		{[]string{"--off", "volcano"}, exitUsage, "unknown flag: --off"},
		{[]string{"volcano"}, exitMistakes, `unknown command "volcano"`},
		{[]string{"--conf", in("typo.conf")}, exitMistakes, "typo.conf:4:11"},
		{[]string{"--policy", in("policy.yaml")}, exitMistakes, "nodeordr"},
		{[]string{"--policy", in("nowhere.yaml")}, exitMistakes, "nowhere.yaml"},
		{[]string{"--conf", in("right.conf"), "--kubeconfig", in("nowhere")}, exitMistakes, "find the API server"},
	} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"shadow"}, c.args...), nil, &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) ||
			out.Len() > 0 {
			t.Errorf("%q ends with %d, says %q and prints %q; want %d and %q", c.args, code, &errs, &out, c.code, c.says)
		}
	}
}
