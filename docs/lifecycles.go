package docs

import (
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/statemachines"
)

// lifecycles writes the state machines that ship: pictures, and the tables that they are drawn from.
func lifecycles() ([]byte, error) {
	p := &page{}
	p.b.WriteString(generated)
	p.heading(1, "Lifecycles")
	p.para(lifecyclesIntro)
	for _, name := range statemachines.Names() {
		m, issues := statemachines.Default(name)
		if err := issues.Err(); err != nil {
			return nil, fmt.Errorf("state machine %s: %w", name, err)
		}
		machinePage(p, m)
	}
	p.heading(2, "What a file may hold")
	for _, part := range statemachines.Schema() {
		p.para("**%s** %s", part.Name, part.Doc)
		var rows [][]string
		for _, k := range part.Keys {
			rows = append(rows, []string{code(k.Name), k.Value, sentence(k.Doc)})
		}
		p.table([]string{"Key", "Value", "What it says"}, rows)
	}
	p.heading(2, "What guards may read")
	p.para("Guards of phases read `job`, `spec` and `status` (a JobStatus), `queue` and `parent`, `cronJob`, or `flow`; rows of `events` " +
		"also `change`, and `pod`, `was` (the object before) and `task`, or `podGroup` and `was`; of a CronJob `job`, a MadeJob. `now` is " +
		"the time.")
	for _, o := range statemachines.Objects() {
		p.heading(3, o.Name)
		p.para("%s", o.Doc)
		var rows [][]string
		for _, f := range o.Members {
			rows = append(rows, []string{code(f.Name), code(f.Type.String()), sentence(f.Doc)})
		}
		p.table([]string{"Field", "Type", "What it is"}, rows)
	}
	return p.bytes(), nil
}

const lifecyclesIntro = `
What happens to a Job, a Queue, a CronJob or a JobFlow is a table: a row for each phase and action says what is done at once, and where
that leads. The tables are data, read at start-up and verified; what is drawn and listed here is what runs.
` + "`celsius controllers --state-machines FOLDER`" + ` reads your own in their stead: copy
[job.yaml](../statemachines/job.yaml), [queue.yaml](../statemachines/queue.yaml), [cronjob.yaml](../statemachines/cronjob.yaml) or
[jobflow.yaml](../statemachines/jobflow.yaml), change it, and try it with
` + "`celsius statemachine check`" + `, which names every mistake at its line and column. ` + "`celsius statemachine render`" + `
draws it.

A change of a pod, a PodGroup or the Job becomes an event, the event an action by the Job's own policies (first those
of the task, then those of the job), and the action a row of the phase that the Job is in. A Command names its action
itself. After the effect the pods are counted again, and the first way whose guard holds is taken; if none holds, the
phase stays.

A way with ` + "`after`" + ` opens once the phase has lasted that long, and only while its guard holds. A row of
` + "`events`" + ` with ` + "`after`" + ` gives its event once its own guard has held that long. The verifier refuses what
could end pods and begin them anew for ever: a cycle with a destructive row (` + "`kill`" + ` that retains none,
` + "`restartPods`" + `) that needs no Command must count into a counter, and a guard must leave the cycle once the counter
is large.`

func machinePage(p *page, m *statemachines.Machine) {
	p.heading(2, strings.ToUpper(m.Name[:1])+m.Name[1:])
	p.para("%s", m.Description)
	p.fence("mermaid", m.Mermaid())
	p.para("What an action does in a phase, and where that leads. The ways are tried in their order, after the effect.")
	var rows [][]string
	for _, phase := range m.Text() {
		name := "**" + phase.Name + "** " + phase.Description
		if phase.Final {
			name += " (final)"
		}
		for _, r := range phase.Rows {
			action := code(r.Action)
			if r.Action == "*" {
				action = "any other"
			}
			rows = append(rows, []string{name, action, r.Does, ways(r.Ways)})
			name = ""
		}
	}
	p.table([]string{"Phase", "Action", "Does", "Then"}, rows)

	rows = nil
	for _, e := range m.Effects() {
		text := []string{e.Description}
		for _, r := range e.Retain {
			text = append(text, fmt.Sprintf("%s: where %s, it retains %s whatever the row says", r[0], code(r[1]), r[2]))
		}
		rows = append(rows, []string{code(e.Name), strings.Join(text, "; ")})
	}
	p.table([]string{"Effect", "What it does"}, rows)

	rows = nil
	for _, a := range m.Actions() {
		who := "policies and Commands"
		switch {
		case a.Internal:
			who = "the controllers"
		case a.Command:
			who = "Commands"
		}
		rows = append(rows, []string{code(a.Name), sentence(a.Description), who})
	}
	p.table([]string{"Action", "What it does", "Asked for by"}, rows)

	p.para("Events, by what they come from. Of one change, the first row that holds gives the event.")
	rows = nil
	for _, e := range m.EventTexts() {
		rows = append(rows, []string{e.From, code(e.Event), code(e.Guard), eventNotes(e)})
	}
	p.table([]string{"From", "Event", "When", "What it is"}, rows)
}

// ways tells where a row leads, the ways numbered where there are several.
func ways(list []statemachines.WayText) string {
	if len(list) == 0 {
		return "stays"
	}
	var out []string
	for i, w := range list {
		text := "→ **" + w.To + "**"
		if w.Guard != "" {
			text += " when " + code(w.Guard)
		}
		if w.After > 0 {
			text += " after " + w.After.String()
		}
		for _, c := range w.Counts {
			text += ", " + code(c) + " + 1"
		}
		for _, s := range w.Sets {
			text += ", sets " + code(s)
		}
		if w.Message != "" {
			text += " (" + w.Message + ")"
		}
		if len(list) > 1 {
			text = fmt.Sprintf("%d. %s", i+1, text)
		}
		out = append(out, text)
	}
	return strings.Join(out, "<br>")
}

func eventNotes(e statemachines.EventText) string {
	notes := []string{}
	if e.Description != "" {
		notes = append(notes, e.Description)
	}
	if e.While != "" {
		notes = append(notes, "lasts while "+code(e.While))
	}
	if e.After > 0 {
		notes = append(notes, "after "+e.After.String())
	}
	if e.Since != "" {
		notes = append(notes, "a timeout counts from "+code(e.Since))
	}
	if e.Internal {
		notes = append(notes, "no policy answers it")
	}
	if e.NeedsTimeout {
		notes = append(notes, "only a policy with a timeout answers it")
	}
	return strings.Join(notes, "; ")
}
