package bench

import (
	"fmt"
	"time"
)

// target is a figure that must be reached.
type target struct {
	what   string
	ours   float64
	theirs float64 // if not 0, the ratio of ours to theirs is the figure
	wanted float64
	most   bool // wanted is an upper limit; otherwise a lower limit
}

// value returns the figure that is compared with wanted.
func (t target) value() float64 {
	if t.theirs == 0 {
		return t.ours
	}
	return t.ours / t.theirs
}

// met reports whether the target is reached.
func (t target) met() bool {
	if t.most {
		return t.value() <= t.wanted
	}
	return t.value() >= t.wanted
}

// tableOfTargets returns a table of all targets, and the number of missed ones.
func tableOfTargets(targets []target) (out table, missed int) {
	out.add("wanted of Celsius", "is", "the other's", "ratio", "wanted", "")
	for _, t := range targets {
		bound, verdict := ">=", "reached"
		if t.most {
			bound = "<="
		}
		if !t.met() {
			verdict = "MISSED"
			missed++
		}
		ratio := ""
		if t.theirs != 0 {
			ratio = fmt.Sprintf("%.2f", t.value())
		}
		out.add(t.what, t.ours, orNone(t.theirs), ratio, fmt.Sprintf("%s %.4g", bound, t.wanted), verdict)
	}
	return out, missed
}

// backlogTargets returns the targets for backlogs. A ratio is the median of the ratios of each round. Therefore theirs is the value that
// gives this ratio.
func backlogTargets(r results) (out []target) {
	compare := func(what string, to entry, figure func(result) float64, wanted float64, most bool) {
		for _, s := range []loadShape{gangs, singles} {
			e := entry{celsius, s}
			if to.shape != plain {
				to.shape = s
			}
			if ratio := r.ratio(e, to, figure); ratio > 0 {
				ours := r.median(e, figure)
				out = append(out, target{what + ", " + string(s), ours, ours / ratio, wanted, most})
			}
		}
	}
	compare("pods/s drained, to kube-scheduler", entry{KubeScheduler, plain}, result.drainedRate, 3, false)
	compare("pods/s drained, to watch and bind", entry{name: watcher}, result.drainedRate, 0.97, false)
	compare("CPU ms a pod of all but the scheduler, to kube-scheduler", entry{KubeScheduler, plain}, result.rest, 1.1, true)
	for _, s := range []loadShape{gangs, singles} {
		if e := (entry{celsius, s}); len(r[e]) > 0 {
			out = append(out, target{what: "CPU ms a pod of the scheduler, " + string(s), ours: r.median(e, result.own), wanted: 0.3, most: true})
		}
	}
	return out
}

// steadyTargets returns the targets for pods at a steady rate.
func steadyTargets(waited []steadyResult) (out []target) {
	by := map[string]steadyResult{}
	for _, r := range waited {
		by[r.name] = r
	}
	ours, is := by[celsius]
	if !is {
		return nil
	}
	if theirs, is := by[KubeScheduler]; is {
		p := func(what string, share, wanted float64) {
			out = append(out, target{
				what + " ms at a steady rate, to kube-scheduler", milliseconds(ours.at(share)), milliseconds(theirs.at(share)), wanted, true,
			})
		}
		p("p50", 0.5, 1)
		p("p99", 0.99, 1.5)
	}
	return append(out, target{what: "calls a pod at a steady rate", ours: ours.callsEach(), wanted: 4, most: true})
}

// tellBacklogs prints the medians of the rounds.
func (b *comparison) tellBacklogs() {
	r := b.took
	var t table
	t.add(fmt.Sprintf("backlog of %d pods", b.pods), "bound s", "drained s", "bound/s", "drained/s", "scheduler CPU", "other CPU", "calls")
	t.add("", "", "", "", "", "ms a pod", "ms a pod", "a pod")
	seconds := func(of func(result) time.Duration) func(result) float64 {
		return func(r result) float64 { return of(r).Seconds() }
	}
	for _, turn := range b.turns() {
		e := entry{turn.name, turn.shape}
		t.add(turn.name+", "+string(turn.shape),
			r.median(e, seconds(func(r result) time.Duration { return r.bound })),
			r.median(e, seconds(func(r result) time.Duration { return r.drained })),
			r.median(e, result.boundRate), r.median(e, result.drainedRate), orNone(r.median(e, result.own)),
			r.median(e, result.rest), r.median(e, result.callsEach))
	}
	b.say("\n%s", t)
	t = nil
	t.add("Celsius, as a multiple of", "bound/s", "drained/s", "scheduler CPU", "other CPU", "calls")
	for _, turn := range b.turns() {
		to := entry{turn.name, turn.shape}
		shapes := []loadShape{turn.shape}
		switch {
		case turn.name == celsius:
			continue
		case turn.shape == plain:
			shapes = []loadShape{gangs, singles}
		}
		for _, s := range shapes {
			e := entry{celsius, s}
			t.add(fmt.Sprintf("%s, by %s", turn.name, s), r.ratio(e, to, result.boundRate), r.ratio(e, to, result.drainedRate),
				orNone(r.ratio(e, to, result.own)), r.ratio(e, to, result.rest), r.ratio(e, to, result.callsEach))
		}
	}
	b.say("%s", t)
}

// tellLatency prints how long pods took.
func (b *comparison) tellLatency() {
	var t table
	t.add(fmt.Sprintf("%d pods/s, ms until bound", b.rate), "p10", "p50", "p90", "p99", "at most", "scheduler CPU", "other CPU", "calls")
	t.add("", "", "", "", "", "", "ms a pod", "ms a pod", "a pod")
	for _, r := range b.waited {
		t.add(r.name, milliseconds(r.at(0.1)), milliseconds(r.at(0.5)), milliseconds(r.at(0.9)), milliseconds(r.at(0.99)),
			milliseconds(r.at(1)), orNone(r.own()), r.rest(), r.callsEach())
	}
	b.say("\n%s", t)
}

// conclude prints all results, and returns an error if there were too many calls.
func (b *comparison) conclude() error {
	var targets []target
	if len(b.waited) > 0 {
		b.tellLatency()
		targets = append(targets, steadyTargets(b.waited)...)
	}
	if len(b.took) > 0 {
		b.tellBacklogs()
		targets = append(targets, backlogTargets(b.took)...)
	}
	t, missed := tableOfTargets(targets)
	b.say("%s", t)
	b.say("live: %s%d of %d missed", summary(b.took, b.waited), missed, len(targets))
	for _, r := range b.waited {
		if r.name == celsius && b.atMost >= 0 && r.callsEach() > b.atMost {
			return fmt.Errorf("%.2f calls a pod are more than %.4g", r.callsEach(), b.atMost)
		}
	}
	return nil
}

// summary returns the text that a script finds in the last line. It uses the one of gangs and singles that is further from the bare loop.
func summary(took results, waited []steadyResult) (out string) {
	if len(took) > 0 {
		ratio := func(s loadShape, to entry) float64 { return took.ratio(entry{celsius, s}, to, result.drainedRate) }
		worst := gangs
		if ratio(singles, entry{loop, singles}) < ratio(gangs, entry{loop, gangs}) {
			worst = singles
		}
		out = fmt.Sprintf("%.0f pods/s drained: bare loop %.2f, watch and bind %.2f", took.median(entry{celsius, worst}, result.drainedRate),
			ratio(worst, entry{loop, worst}), ratio(worst, entry{watcher, worst}))
		if n := ratio(worst, entry{KubeScheduler, plain}); n > 0 {
			out += fmt.Sprintf(", kube-scheduler %.2f", n)
		}
		out += "; "
	}
	for _, r := range waited {
		if r.name == celsius {
			out += fmt.Sprintf("p50 %d ms, p99 %d ms; ", r.at(0.5).Milliseconds(), r.at(0.99).Milliseconds())
		}
	}
	return out
}
