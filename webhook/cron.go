package webhook

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines/cron"
)

// cronFunctions returns functions that report mistakes in parts of a CronJob.
func cronFunctions() []*rules.Function {
	one := func(name, doc string, wrong func(string) error) *rules.Function {
		return &rules.Function{Name: name, Doc: doc, Overloads: []rules.Overload{{
			ID: "admission_" + name, Args: []*cel.Type{cel.StringType}, Result: cel.ListType(cel.StringType), Cost: 1000,
			Eval: func(args ...ref.Val) ref.Val {
				if err := wrong(textOf(args[0])); err != nil {
					return typed.Strings([]string{err.Error()})
				}
				return typed.Strings(nil)
			},
		}}}
	}
	return []*rules.Function{
		one("scheduleMistakes", "What is wrong with the schedule of a CronJob, in a list; empty: nothing.", cron.CheckSchedule),
		one("timeZoneMistakes", "What is wrong with the name of a time zone, in a list; empty: nothing.", func(name string) error {
			_, err := cron.ParseZone(name)
			return err //nolint:wrapcheck // it is the message
		}),
		one("cronJobNameMistakes", "What is wrong with the name of a CronJob, in a list; empty: nothing.", cron.CheckName),
	}
}
