package language

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// timeFunctions returns the functions about waiting times, protection times, the time of day and the past.
func timeFunctions() []*rules.Function {
	optional := cel.OptionalType(cel.DurationType)
	waitLimit := Method("waitLimit", "How long the job may wait: what its annotation of the waiting time says, where that is a duration "+
		"above 0 such as 1h30m; else the default.", []*cel.Type{JobType(), optional}, optional, func(args ...ref.Val) ref.Val {
		j, ok := args[0].(*JobView)
		if !ok {
			return wrongArgument(args[0])
		}
		if limit, ok := waitLimit(j.Of.Annotations); ok {
			return types.OptionalOf(types.Duration{Duration: limit})
		}
		return args[1]
	}, "{0}.annotations")
	cooldown := Method("cooldown", "How long the task is to be spared from when it was scheduled on: its label, else its annotation, "+
		"volcano.sh/cooldown-time, where that is a duration such as 10m.", []*cel.Type{TaskType()}, optional, func(args ...ref.Val) ref.Val {
		t, ok := args[0].(*TaskView)
		if !ok {
			return wrongArgument(args[0])
		}
		if d, ok := cooldown(t.Of); ok {
			return types.OptionalOf(types.Duration{Duration: d})
		}
		return types.OptionalNone
	}, "{0}.labels", "{0}.annotations")
	decay := called(Method("decayed",
		"What is left of an amount of that age if it halves with every half-life: amount * 2^(-age/halfLife). An age below 0 counts as 0; a "+
			"half-life that is not above 0 is an error.",
		[]*cel.Type{cel.DoubleType, cel.DurationType, cel.DurationType}, cel.DoubleType, decayed, rules.Arguments), "age", "halfLife")
	return []*rules.Function{waitLimit, cooldown, inWindowFunction(), decay}
}

// cooldown reads a pod's cool-down time. It ignores an invalid duration.
func cooldown(t *model.Task) (time.Duration, bool) {
	text, ok := t.Labels[model.CooldownKey]
	if !ok {
		text, ok = t.Annotations[model.CooldownKey]
	}
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// waitLimit reads the waiting time in a PodGroup's annotations. It ignores an invalid duration, or one that is not above 0.
func waitLimit(annotations map[string]string) (time.Duration, bool) {
	for _, key := range []string{model.WaitingTimeAnnotation, model.OldWaitingTimeAnnotation} {
		if text, ok := annotations[key]; ok {
			limit, err := time.ParseDuration(text)
			return limit, err == nil && limit > 0
		}
	}
	return 0, false
}

func inWindowFunction() *rules.Function {
	var zones sync.Map // known zones by name, because loading a zone is expensive
	zone := func(name string) (*time.Location, error) {
		if l, ok := zones.Load(name); ok {
			return l.(*time.Location), nil
		}
		l, err := time.LoadLocation(name)
		if err != nil || name == "Local" {
			return nil, fmt.Errorf("%q is no time zone; write it as Europe/Paris or UTC", name)
		}
		zones.Store(name, l)
		return l, nil
	}
	str := cel.StringType
	fn := Method("inWindow", "The time of day in that zone is in the window, written 22:00-06:00: from its first minute until before its "+
		"last. One that ends before it begins goes over midnight; "+
		"one that ends where it begins is the whole day.", []*cel.Type{cel.TimestampType, str, str}, cel.BoolType, func(args ...ref.Val) ref.Val {
		at, okT := args[0].(types.Timestamp)
		text, okW := args[1].(types.String)
		name, okZ := args[2].(types.String)
		if !okT || !okW || !okZ {
			return wrongArgument(args[0])
		}
		from, until, err := window(string(text))
		if err != nil {
			return types.WrapErr(err)
		}
		l, err := zone(string(name))
		if err != nil {
			return types.WrapErr(err)
		}
		local := at.In(l)
		minute := local.Hour()*60 + local.Minute()
		if from < until {
			return types.Bool(from <= minute && minute < until)
		}
		return types.Bool(minute >= from || minute < until)
	})
	fn.Overloads[0].Member, fn.Overloads[0].Reads = false, []string{rules.Arguments}
	return called(fn, "time", "window", "zone")
}

// window parses "22:00-06:00" to minutes of the day.
func window(text string) (from, until int, err error) {
	first, second, ok := strings.Cut(text, "-")
	if ok {
		from, ok = minuteOfDay(first)
	}
	if ok {
		until, ok = minuteOfDay(second)
	}
	if !ok {
		return 0, 0, fmt.Errorf("%q is no window of the day; write it as 22:00-06:00", text)
	}
	return from, until, nil
}

func minuteOfDay(text string) (int, bool) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	return t.Hour()*60 + t.Minute(), err == nil
}

func decayed(args ...ref.Val) ref.Val {
	amount, isNumber := Number(args[0])
	age, isAge := args[1].(types.Duration)
	half, isHalf := args[2].(types.Duration)
	switch {
	case !isNumber:
		return wrongArgument(args[0])
	case !isAge:
		return wrongArgument(args[1])
	case !isHalf:
		return wrongArgument(args[2])
	case half.Duration <= 0:
		return types.NewErr("the half-life must be above 0, found %s", half.Duration)
	}
	return types.Double(amount * math.Exp2(-float64(max(age.Duration, time.Duration(0)))/float64(half.Duration)))
}
