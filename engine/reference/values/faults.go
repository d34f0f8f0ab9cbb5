package values

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// fault identifies a row, or a computed field, with an error.
type fault struct{ site, table, rule string }

func (x *Values) fault(site, table, rule string, f *language.Frame, err ref.Val) {
	e := x.faults[fault{site, table, rule}]
	if e == nil {
		e = &model.RuleError{Site: site, Table: table, Rule: rule, Object: f.Subject(), Text: fmt.Sprint(err)}
		x.faults[fault{site, table, rule}] = e
	}
	e.Count++
}

// Faults returns the errors of the cycle, by site, table and rule. The count is the number of evaluations that failed.
func (x *Values) Faults() []model.RuleError {
	var out []model.RuleError
	for _, of := range slices.SortedFunc(maps.Keys(x.faults), func(a, b fault) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		out = append(out, *x.faults[of])
	}
	return out
}

func (x *Values) faultIn(a *policy.Attribute, f *language.Frame, v ref.Val) {
	if types.IsError(v) {
		x.fault("attributes", a.Table, a.Name, f, v)
	}
}
