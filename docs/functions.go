package docs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules"
)

// functions lists those of the vocabulary, by what they are called on.
func (r *reference) functions() {
	r.heading(2, "Functions")
	r.para("“Reads” is what the function takes from its arguments; the row is asked again only where that has changed. a, b and dims are " +
		"what the function is called on and its arguments, in the order of writing.")
	var owners []string
	byOwner := map[string][]*rules.Function{}
	for _, f := range r.lang.Functions() {
		owner := r.ownerOf(f)
		if byOwner[owner] == nil {
			owners = append(owners, owner)
		}
		byOwner[owner] = append(byOwner[owner], f)
	}
	for _, owner := range owners {
		if owner == "" {
			r.heading(3, "Others")
		} else {
			r.heading(3, "Of "+owner)
		}
		var rows [][]string
		for _, f := range byOwner[owner] {
			for i := range f.Overloads {
				if f.Overloads[i].Spread || f.Overloads[i].Ints {
					continue // is written as the first
				}
				doc := f.Doc
				if i > 0 {
					doc = "The same."
				}
				rows = append(rows, []string{code(signature(f, &f.Overloads[i])), doc, r.whatIsRead(&f.Overloads[i])})
			}
		}
		r.table([]string{"function", "meaning", "reads"}, rows)
	}
}

// ownerOf is the type that a function is called on, "" where it is on none of ours.
func (r *reference) ownerOf(f *rules.Function) string {
	for _, a := range f.Written(&f.Overloads[0]) {
		if r.object(a.String()) != nil {
			return a.String()
		}
	}
	return ""
}

func (r *reference) object(name string) *rules.Object {
	for _, o := range r.lang.Objects() {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// signature writes an overload as it is called.
func signature(f *rules.Function, o *rules.Overload) string {
	var args []string
	ints := slices.ContainsFunc(f.Overloads, func(o rules.Overload) bool { return o.Ints })
	for i, a := range f.Written(o) {
		arg := typeText(a.String())
		if ints {
			arg = strings.ReplaceAll(arg, "double", "number")
		}
		if o.Member {
			i--
		}
		if i >= 0 && i < len(f.Names) {
			arg = f.Names[i] + " " + arg
		}
		args = append(args, arg)
	}
	result := typeText(o.Result.String())
	switch op := symbol(f.Name); {
	case op == "[]":
		return args[0] + "[" + args[1] + "] → " + result
	case op != f.Name || f.Name == "in":
		return args[0] + " " + op + " " + args[1] + " → " + result
	case o.Member:
		return args[0] + "." + f.Name + "(" + strings.Join(args[1:], ", ") + ") → " + result
	}
	return f.Name + "(" + strings.Join(args, ", ") + ") → " + result
}

// whatIsRead words an overload's reads: "{0}.labels" of a Task is task.labels.
func (r *reference) whatIsRead(o *rules.Overload) string {
	if o.Reads == nil || slices.Contains(o.Reads, rules.Arguments) {
		return "its arguments"
	}
	var out []string
	for _, read := range o.Reads {
		owner, path, _ := strings.Cut(read, ".")
		if i, err := strconv.Atoi(strings.Trim(owner, "{}")); err == nil {
			owner = o.Args[i].String()
		}
		out = append(out, r.pathText(owner, path))
	}
	return strings.Join(out, ", ")
}

// pathText writes a path of fields from a type; what rules cannot read themselves is told in words.
func (r *reference) pathText(owner, path string) string {
	t, of := owner, "the "+strings.ToLower(owner)
	if path == "" {
		return of + " as a whole"
	}
	for name := range strings.SplitSeq(path, ".") {
		o := r.object(t)
		if o == nil || o.Find(name) == nil {
			break
		}
		m := o.Find(name)
		if m.Hidden {
			return m.Doc + " of " + of
		}
		t, of = strings.TrimSuffix(strings.TrimPrefix(m.Type.String(), "list("), ")"), name+" of "+of
	}
	return code(strings.ToLower(owner) + "." + path)
}

// libraries lists what comes from CEL and Kubernetes.
func (r *reference) libraries() error {
	r.heading(2, "Libraries")
	r.para("From CEL itself, and, marked ★, from [Kubernetes](https://kubernetes.io/docs/reference/using-api/cel/). A dot before the name: " +
		"it is called on a value.")
	var rows [][]string
	for _, l := range rules.Libraries() {
		names, err := l.Names()
		if err != nil {
			return err
		}
		title := l.Name
		if l.Kubernetes {
			title += " ★"
		}
		rows = append(rows, []string{title, l.Doc, codes(names)})
	}
	r.table([]string{"library", "for", "functions and macros"}, rows)
	return nil
}

// scores says how a score becomes a number among others.
func (r *reference) scores() {
	r.heading(2, "Scores")
	r.para("For a task, the nodes that fit now are the group that is chosen from; where there are none, those that fit once what is being " +
		"released is gone. " +
		"Each row of `scores` gives every node of the group a number; it is normalised over the group, rounded, multiplied by `weight`, and " +
		"summed over the rows. The largest sum wins; " +
		"ties go by name, or by a permutation that `--seed` draws. A row whose `when` is false for a node adds 0 there, and that node has no " +
		"part in min and max.")
	r.para("A score is a number from -1e100 to 1e100. A larger number, infinity and NaN are errors of the row for that node, which adds 0 " +
		"there. A number closer to 0 than 1e-100 counts as 0. `weight` is a number from -1e50 to 1e50, and `step` one from 1e-50 to 1e50. " +
		"Within these bounds no normalised score and no sum overflows.")
	var rows [][]string
	for _, k := range rules.Normalizations() {
		rows = append(rows, []string{code(k.Name), code(k.Value), k.Doc})
	}
	r.table([]string{"`normalize`", "value", ""}, rows)
	rows = nil
	for _, k := range rules.Roundings() {
		rows = append(rows, []string{code(k.Name), k.Doc})
	}
	r.table([]string{"`round: {mode: …}`", "to a multiple of `step`"}, rows)
}

// orders says how sort keys compare.
func (r *reference) orders() {
	r.heading(2, "Orders")
	r.para("Sort keys are compared by value: numbers, strings, points in time and durations as usual, false before true, lists element by " +
		"element, " +
		"lists in them likewise; where one list begins with all of the other they are equal. NaN is an error of the row. " +
		"What has no opinion, because `when` is false or the row errs, comes last, with `descending` too; where neither of two has one they " +
		"are equal, and " +
		"the next row decides. Keys are read again whenever the first is taken.")
}

func (r *reference) messages() {
	r.heading(2, "Messages")
	r.para("`message` is text with expressions between `{{` and `}}`: `message: \"queue {{queue.name}} deserves {{queue.deserved}}\"`. " +
		"They see what the row sees, and are evaluated only when the message is shown. A row without a message is told by its expression.")
}

func (r *reference) errors() {
	r.heading(2, "Errors")
	r.para("A row errs where its expression does: a missing key, a division by 0, a score that is no number. The error is counted, named in " +
		"the report with the object that it came first for, " +
		"and touches nothing else. What the row is then taken to say is its `onError`; without one, the section's.")
	var rows [][]string
	for _, k := range rules.ErrorAnswers() {
		rows = append(rows, []string{code(k.Name), k.Doc})
	}
	r.table([]string{"`onError`", ""}, rows)
}

func (r *reference) reads() {
	r.heading(2, "What a row reads")
	r.para("The compiler derives from each row which fields it reads, and from that for how long an answer holds: `celsius policy facts " +
		"FILE` prints both, with the type and the estimated cost. What may cost much runs [within a " +
		"budget](writing-policies.md#what-a-row-may-use).")
	r.table([]string{"a row reads", "its answer holds"}, [][]string{
		{"only the task (its job, its queue)", "per class of tasks: tasks that agree in all that the active rows read are one class"},
		{"also labels, taints, capacity of the node", "per class and node, until the node's object changes"},
		{"also what is used on the node", "per class and node, until the node changes in any way"},
		{"the cluster's use, or other nodes", "not at all"},
		{"`now` in a part of its own, as in `now.getHours() >= 20`", "until the value of that part changes"},
		{"`now` mixed with other things, as in `now - job.createdAt`", "for one cycle"},
	})
}

// actions lists the verbs.
func (r *reference) actions() {
	r.heading(2, "Actions")
	r.para("An action is a list of steps, a step a verb with its keys. The [shipped ones](tables.md#actions) are written in the same way as " +
		"those that a policy defines under `spec.actions`; `spec.pipeline` says which run, and in which order.")
	r.fence("yaml", `
actions:
- name: launch
  steps:
  - {verb: place, tasks: "task.status == 'Pending'", commit: task, turn: all, onNoNode: "true"}`)
	for _, v := range policy.Verbs() {
		r.verb(v)
	}
}

// verb tells one verb: its parameters, what it asks the rows, and what it decides by itself.
func (r *reference) verb(v policy.Verb) {
	r.heading(3, v.Name)
	r.para("%s", v.Doc)
	r.table([]string{"key", "value", "meaning"}, keyTable(v.Keys()))
	r.para("It asks the sections %s. What it decides by itself:", codes(v.Sites))
	r.list(v.Itself)
}
