package values

import (
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// waterFill returns the part of one queue. If the attribute settles once per cycle, it is computed once per cycle.
func (x *Values) waterFill(a *policy.Attribute, owner ref.Val) ref.Val {
	values := x.filled[a]
	if values == nil {
		values = x.fill(a)
	}
	if a.Settle == "cycle" {
		x.filled[a] = values
	}
	of, _ := language.Owner(owner).(*model.Queue)
	if v := values[of]; v != nil {
		return v
	}
	return types.NewErr("%s has no value for queue %s: it takes no part", a.Name, of.Name)
}

func (x *Values) fill(a *policy.Attribute) map[*model.Queue]ref.Val {
	values := map[*model.Queue]ref.Val{}
	total, err := x.amounts(a, a.Args["total"], x.Frame())
	if err != nil {
		return values
	}
	var claims []quota.Claim
	var taking []*model.Queue
	for _, q := range x.c.QueuesByName() {
		f := x.Frame().OfQueue(q)
		if e := a.Args["among"]; e != nil && Eval(e, f) != types.True {
			continue
		}
		claim, err := x.claim(a, q)
		if err != nil {
			values[q] = err
			continue
		}
		claims, taking = append(claims, claim), append(taking, q)
	}
	var units []float64
	if e := a.Args["whole"]; e != nil && Eval(e, x.Frame()) == types.True {
		units = x.c.Dims.Devices()
	}
	for i, r := range quota.WholeFill(total, claims, units) {
		values[taking[i]] = x.World().Amounts(r)
	}
	return values
}

func (x *Values) claim(a *policy.Attribute, q *model.Queue) (c quota.Claim, err ref.Val) {
	f := x.Frame().OfQueue(q)
	weight := Eval(a.Args["weight"], f)
	w, ok := language.Number(weight)
	if !ok || !(w > 0) {
		err = types.NewErr("weight of queue %s must be above 0, is %s", q.Name, language.Text(weight))
		x.fault("attributes", a.Table, a.Name, f, err)
		return c, err
	}
	c.Weight = w
	if e := a.Args["rank"]; e != nil {
		rank := Eval(e, f)
		if c.Rank, ok = language.Number(rank); !ok || math.IsNaN(c.Rank) {
			err = types.NewErr("rank of queue %s must be a number, is %s", q.Name, language.Text(rank))
			x.fault("attributes", a.Table, a.Name, f, err)
			return c, err
		}
	}
	err = x.amountsInto(a, a.Args, f, map[string]*model.Resources{"floor": &c.Floor, "ceiling": &c.Ceiling, "demand": &c.Demand})
	return c, err
}
