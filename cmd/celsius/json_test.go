package main

import (
	"strings"
	"testing"
)

// TestReadersOfJSON runs each command that reads files. The files contain JSON that a YAML parser does not accept, or reads in another way.
func TestReadersOfJSON(t *testing.T) {
	const emoji = `"\ud83d\ude00"`
	policy := `{"apiVersion": "scheduling.celsius.dev/v1alpha1", "kind": "SchedulingPolicy",
"metadata": {"name": "p", "annotations": {"a": ` + emoji + `}}, 
"spec": {"pipeline": ["allocate"], "tiers": [{"name": "t", "tables": [{"name": "gang"}]}]}}`
	world := `{"apiVersion": "sim.celsius.dev/v1alpha1", "kind": "World", "nodes": [{"name": "n", "cpu": 4, "labels": {"a": "b"}}],
"jobs": [{"name": "j", "cpu": 1, "annotations": {"a": ` + emoji + `, "celsius.dev/sim": "{\"waiting\": \"\\ud83d\\ude00\"}"}}]}`
	tabbed := func(text string) string {
		return strings.ReplaceAll(strings.ReplaceAll(text, `{"`, "{\n\t\""), ",", "\n\t,\n\t")
	}
	conf := `{"actions": "allocate", "tiers": [{"plugins": [{"name": "gang", "arguments": {"a": ` + emoji + `}}]}]}`
	scenario := "policy policy.json\nload world.json\ncycle\ncmp want\n-- policy.json --\n" + policy +
		"\n-- world.json --\n" + world + "\n-- want --\n"
	t.Chdir(files(t, map[string]string{
		"policy.json": policy, "policy-tabs.json": tabbed(policy), "world.json": world, "world-tabs.json": tabbed(world),
		"list.json":      "[" + policy + "]",
		"commented.json": "# Why.\n\n" + policy + "\n---\n# And.\n" + policy + "\n",
		"conf.json":      conf,
		"conf-tabs.json": tabbed(conf),
		"now.txtar":      scenario,
	}))
	for _, c := range []struct {
		args string
		code int
		want string // a part of the output
	}{
		{"policy fmt policy.json", exitOK, "annotations: {a: 😀}"},
		{"policy fmt policy-tabs.json", exitOK, "annotations: {a: 😀}"},
		{"policy fmt list.json", exitOK, "- apiVersion: scheduling.celsius.dev/v1alpha1"},
		{"policy fmt commented.json", exitOK, "# Why.\n\napiVersion"},
		{"policy fmt commented.json", exitOK, "---\n# And.\napiVersion"},
		{"policy lint policy.json policy-tabs.json", exitOK, ""},
		{"policy lint list.json", exitMistakes, "list.json:1:1: must be a mapping, found a list"},
		{"policy show policy.json", exitOK, ""},
		{"policy convert conf.json", exitMistakes, `gang: unknown argument "a"`},
		{"policy convert conf-tabs.json", exitMistakes, `gang: unknown argument "a"`},
		{"simulate --policy policy.json world.json", exitOK, "bind"},
		{"simulate --policy policy-tabs.json world-tabs.json", exitOK, "bind"},
		{"simulate list.json", exitMistakes, "list.json:1:1: must be an object"},
		{"simulate world.json --what-if world-tabs.json", exitOK, "would start now"},
		{"simulate now.txtar", exitDiffers, "+ bind"},
	} {
		var out, errs strings.Builder
		code := run(strings.Fields(c.args), strings.NewReader(""), &out, &errs)
		if got := out.String() + errs.String(); code != c.code || !strings.Contains(got, c.want) || strings.Contains(got, "escape code") {
			t.Errorf("%s: code %d, %q; want %d, %q", c.args, code, got, c.code, c.want)
		}
	}
}
