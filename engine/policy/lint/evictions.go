package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Evictions warns about actions that cannot evict what they seem to evict. Either an earlier tier permits victims, so that the rows of a
// later tier protect no pod. Or no row permits any victim at all. p is the compiled policy of the document.
func Evictions(doc *source.Document, p *policy.Policy) source.Issues {
	l := &linter{policy: p, doc: doc, spec: doc.Root.Get("spec")}
	l.evictions()
	l.found.Sort()
	return l.found
}

// evictions warns about the steps of each action in the pipeline.
func (l *linter) evictions() {
	for _, a := range l.policy.Actions {
		seen := map[string]bool{}
		barren := len(a.Steps) > 0
		for _, step := range a.Steps {
			site := victimsSite(step)
			rows := l.permitting(site, step)
			if site == "" || !l.takesJobs(step) || len(rows) == 0 {
				continue
			}
			barren = false
			if asked := site + " " + rowNames(rows); !seen[asked] {
				seen[asked] = true
				l.hiddenTiers(a.Name, rows)
			}
		}
		if barren {
			l.barren(a)
		}
	}
}

// victimsSite returns the section whose rows permit the evictions of a step for another pod; "": the step evicts none. It ignores the
// section victims, because an action such as shuffle is often in a pipeline before a table names victims for it.
func victimsSite(step *policy.Step) string {
	for _, p := range step.Verb.Parameters {
		if p.Name == policy.KeyVictims && step.Word(policy.KeyVictims) != policy.Victims {
			return step.Word(policy.KeyVictims)
		}
	}
	return ""
}

// permitting returns the rows of a section that can permit a victim in a step, tier by tier. A veto only protects. A row has no effect in
// a step if its field when is false for the scope of the step.
func (l *linter) permitting(site string, step *policy.Step) (out []*policy.Rule) {
	of := &language.Frame{Scope: types.String(step.Word(policy.KeyScope))}
	for _, r := range l.policy.Rules(site) {
		if !r.Veto && (r.When == nil || r.When.Eval(of) != types.False) {
			out = append(out, r)
		}
	}
	return out
}

// takesJobs reports whether a step can take any job: without rows of jobStarving no job is starving.
func (l *linter) takesJobs(step *policy.Step) bool {
	jobs := step.Condition(policy.KeyJobs)
	if jobs == nil || len(l.policy.Rules(policy.JobStarving)) > 0 {
		return true
	}
	return !strings.Contains(jobs.Text.Value, "job.starving") || strings.Contains(jobs.Text.Value, "||") ||
		strings.Contains(jobs.Text.Value, "!job.starving")
}

// builtIn returns the names of the built-in tables with rows that let an action evict; "": none has such rows.
func builtIn(site string) string {
	tables := map[string]string{
		policy.JobStarving: "gang or priority", policy.Preemptable: "priority or drf", policy.Reclaimable: "capacity or proportion",
		policy.Evictable: "priority or gang",
	}[site]
	if tables == "" {
		return ""
	}
	return ", such as those of table " + tables
}

// barren warns about an action whose steps all evict, if none of them can.
func (l *linter) barren(a *policy.Action) {
	var missing []string
	for _, step := range a.Steps {
		site := victimsSite(step)
		if site == "" {
			return // the action does something else
		}
		if !l.takesJobs(step) {
			missing = append(missing, policy.JobStarving)
		}
		if len(l.permitting(site, step)) == 0 {
			missing = append(missing, site)
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	var tables []string
	for _, site := range missing {
		tables = append(tables, "rows of "+site+builtIn(site))
	}
	for i, site := range missing {
		if vetoes := rowNames(l.vetoes(site)); vetoes != "" && site != policy.JobStarving {
			missing[i] += " (" + vetoes + " only protect)"
		}
	}
	hint := "remove the action from the pipeline, or add " + strings.Join(tables, " and ")
	l.warn(l.inPipeline(a.Name).Issuef(hint, "the action %s can evict no pod: no row of the policy permits it in %s", a.Name,
		strings.Join(missing, " and in ")))
}

// vetoes returns the rows of a section that only protect.
func (l *linter) vetoes(site string) []*policy.Rule {
	return slices.DeleteFunc(slices.Clone(l.policy.Rules(site)), func(r *policy.Rule) bool { return !r.Veto })
}

// hiddenTiers warns about rows of later tiers. An action evaluates them only if the first tier with permitting rows permits no victim.
func (l *linter) hiddenTiers(action string, rows []*policy.Rule) {
	var decide, hidden []*policy.Rule
	for _, r := range rows {
		switch {
		case r.Tier == rows[0].Tier:
			decide = append(decide, r)
		case !r.Expression.Constant(): // a row that permits every victim protects no pod in any tier
			hidden = append(hidden, r)
		}
	}
	tier := l.tierName(rows[0].Tier)
	for len(hidden) > 0 {
		table, at := hidden[0].Table, hidden[0].Tier
		of := func(r *policy.Rule) bool { return r.Table == table && r.Tier == at }
		mine := slices.DeleteFunc(slices.Clone(hidden), func(r *policy.Rule) bool { return !of(r) })
		hidden = slices.DeleteFunc(hidden, of)
		hint := fmt.Sprintf("move table %s to tier %s", table, tier)
		switch {
		case len(decide) == 1 && decide[0].Table == "gang":
			hint = fmt.Sprintf("remove the param protect: tier of table gang, so that its row is a veto, or move table %s to tier %s", table, tier)
		case l.isInline(at, table):
			hint = fmt.Sprintf("write veto: true in the rows of table %s, or move the table to tier %s", table, tier)
		}
		l.warn(l.tableAt(at, table).Issuef(hint, "%s protect no pod in action %s where an earlier tier permits a victim: tier %s decides by %s",
			rowNames(mine), action, tier, rowNames(decide)))
	}
}

// rowNames returns the names of rows as table/row.
func rowNames(rows []*policy.Rule) string {
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Table + "/" + r.Name
	}
	return strings.Join(names, ", ")
}

// inPipeline returns the place where the pipeline names an action.
func (l *linter) inPipeline(action string) source.Value {
	pipeline := l.spec.Get("pipeline")
	for _, item := range l.items(pipeline) {
		if item.String(&l.quiet) == action {
			return item
		}
	}
	return pipeline
}

// tierAt returns the tier with this number, or the list of tiers if the file does not contain it.
func (l *linter) tierAt(number int) source.Value {
	tiers := l.spec.Get("tiers")
	if items := l.items(tiers); number < len(items) {
		return items[number]
	}
	return tiers
}

func (l *linter) tierName(number int) string {
	if name := l.tierAt(number).Get("name"); name.Exists() {
		return name.String(&l.quiet)
	}
	return fmt.Sprint(number + 1)
}

// isInline reports whether the policy contains the rows of a table, so that its author can change them.
func (l *linter) isInline(tier int, table string) bool {
	return slices.ContainsFunc(l.items(l.tierAt(tier).Get("tables")), func(entry source.Value) bool {
		name := entry.Get("name")
		return name.String(&l.quiet) == table && entry.Get("inline").Exists()
	})
}

// tableAt returns the entry of a table in a tier.
func (l *linter) tableAt(tier int, table string) source.Value {
	at := l.tierAt(tier)
	for _, entry := range l.items(at.Get("tables")) {
		if name := entry.Get("name"); name.String(&l.quiet) == table {
			return name
		}
	}
	return at
}
