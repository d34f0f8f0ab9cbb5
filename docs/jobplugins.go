package docs

import (
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

const jobPluginsIntro = `
A Job asks for plugins by name in ` + "`spec.plugins`" + `, each with arguments as on a command line:

` + "```yaml" + `
spec:
  plugins:
    pytorch: ["--master=master", "--worker=worker", "--port=23456"]
` + "```" + `

A plugin is a file of rows: what it adds to the Job's pods, and which objects it makes beside the Job. Those below ship, with the
names, arguments and effects that Volcano's have. ` + "`celsius controllers --job-plugins FOLDER`" + ` adds a cluster's own, or
puts them in the place of those that ship; give ` + "`celsius webhook`" + ` the same folder, so that arguments are checked when a Job is
created, and [` + "`celsius simulate`" + `](simulate.md) such a file among the others. ` + "`celsius jobplugin check`" + ` names every
mistake of a file at its line and column. [jax.yaml](../samples/jobplugins/jax.yaml) is
one to begin with.

Objects are made once the Job is let in, before its first pod. They belong to the Job; one of the same name that does not is left
alone, and the Job says so and waits. When the Job is scaled they are brought in line. They go when the Job's pods are killed, also at
its end, and are made anew with them. What was made stands in ` + "`status.controlledResources`" + `.`

// jobPlugins writes the job plugins that ship, and how others are written.
func jobPlugins() ([]byte, error) {
	set, issues := jobplugin.Default()
	if set == nil {
		return nil, fmt.Errorf("job plugins: %w", issues.Err())
	}
	p := &page{}
	p.b.WriteString(generated)
	p.heading(1, "Job plugins")
	p.para(jobPluginsIntro)
	for _, name := range set.Names() {
		pluginPage(p, set.Plugin(name))
	}
	p.heading(2, "What a file may hold")
	p.para("Values may have CEL in them, between `{{` and `}}`. Where that is all of a value, the value is what the expression " +
		"gives: a number, a list, a map. In a field of text it is always written as text.")
	for _, part := range jobplugin.Schema() {
		p.para("**%s** %s", part.Name, part.Doc)
		var rows [][]string
		for _, k := range part.Keys {
			rows = append(rows, []string{code(k.Name), k.Value, sentence(k.Doc)})
		}
		p.table([]string{"Key", "Value", "What it says"}, rows)
	}
	p.heading(2, "What rows see")
	roots, err := jobplugin.Roots()
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, r := range roots {
		rows = append(rows, []string{code(r.Name), code(r.Type.String()), sentence(r.Doc)})
	}
	p.table([]string{"Name", "Type", "What it is"}, rows)
	p.para("Beside the [operators, functions and libraries](rule-language.md#libraries) of all rules there are")
	functions, err := jobplugin.Functions()
	if err != nil {
		return nil, err
	}
	rows = nil
	for _, f := range functions {
		for i := range f.Overloads {
			doc := f.Doc
			if i > 0 {
				doc = "The same."
			}
			rows = append(rows, []string{code(signature(f, &f.Overloads[i])), doc})
		}
	}
	p.table([]string{"Function", "What it gives"}, rows)
	return p.bytes(), nil
}

func pluginPage(p *page, plugin *jobplugin.Plugin) {
	p.heading(2, plugin.Name)
	needs := ""
	if len(plugin.Needs) > 0 {
		needs = " A Job with it has " + codes(plugin.Needs) + ", too."
	}
	p.para("%s%s [Source](../rules/jobplugins/%s.yaml).", sentence(plugin.Description), needs, plugin.Name)
	var rows [][]string
	for _, x := range plugin.Params() {
		rows = append(rows, []string{code(x.Flag), code(x.Default), strings.TrimSpace(x.Type + " " + x.Range), sentence(x.Doc)})
	}
	if len(rows) > 0 {
		p.table([]string{"Argument", "Default", "Type", "What it says"}, rows)
	}
	rows = nil
	for _, r := range plugin.PodRows() {
		rows = append(rows, []string{code(r.Name), codes(r.Adds) + " of pods", sentence(r.Doc)})
	}
	for _, r := range plugin.ObjectRows() {
		rows = append(rows, []string{code(r.Name), "a " + r.Adds[0], sentence(r.Doc)})
	}
	p.table([]string{"Row", "Adds", "What for"}, rows)
}
