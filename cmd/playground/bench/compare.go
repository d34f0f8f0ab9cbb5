package bench

import (
	"context"
	"slices"
)

// entry is a contender with a shape of load.
type entry struct {
	name  string
	shape loadShape
}

// results contains the results of all runs, by contender and round.
type results map[entry][]result

// median returns the median of a figure over the rounds, or 0 without runs.
func (r results) median(e entry, figure func(result) float64) float64 {
	var all []float64
	for _, run := range r[e] {
		all = append(all, figure(run))
	}
	return median(all)
}

// ratio returns the median over the rounds of the ratio of two contenders. It compares within each round, because the machine's speed
// changes during a measurement by more than the difference between the contenders.
func (r results) ratio(e, to entry, figure func(result) float64) float64 {
	var all []float64
	for i, run := range r[to] {
		if i < len(r[e]) && figure(run) > 0 {
			all = append(all, figure(r[e][i])/figure(run))
		}
	}
	return median(all)
}

// turn is one run of a contender with a load.
type turn struct {
	contender

	shape loadShape
}

// comparison is a cluster in which schedulers and floors are compared.
type comparison struct {
	*bench

	waited []steadyResult
	took   results
}

// turns returns the runs of one round. Each contender that is compared with Celsius runs directly before or after Celsius.
func (b *comparison) turns() []turn {
	out := []turn{{bareLoop(), gangs}, {b.celsiusContender(), gangs}, {b.watchAndBind(), gangs}}
	for _, peer := range b.peers() {
		out = append(out, turn{peer, plain})
	}
	return append(out, turn{b.watchAndBind(), singles}, turn{b.celsiusContender(), singles}, turn{bareLoop(), singles})
}

// compare runs all contenders, and prints the results.
func (b *comparison) compare(ctx context.Context) error {
	if b.latencyFor > 0 {
		// Latency is measured first, while the API server does not have to collect the garbage of other runs.
		var err error
		if b.waited, err = b.latency(ctx); err != nil {
			return err
		}
	}
	if b.rounds > 0 {
		if err := b.takeTurns(ctx); err != nil {
			return err
		}
	}
	return b.conclude()
}

// takeTurns runs all contenders in every round. Every second round has the opposite order, because runs get slower over the minutes.
func (b *comparison) takeTurns(ctx context.Context) error {
	b.say("warming up: the bare loop, %d pods on %d nodes", b.pods, b.nodes)
	warm, err := b.run(ctx, bareLoop(), gangs)
	if err != nil {
		return err
	}
	if enough := int(warm.boundRate()*b.least.Seconds()/1000+1) * 1000; enough > b.pods {
		b.pods = enough
	}
	b.say("each run binds %d pods", b.pods)
	for i := range b.rounds {
		turns := b.turns()
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, t := range turns {
			r, err := b.run(ctx, t.contender, t.shape)
			if err != nil {
				return err
			}
			e := entry{t.name, t.shape}
			b.took[e] = append(b.took[e], r)
		}
	}
	return nil
}

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return 0
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
