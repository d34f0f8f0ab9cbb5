package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/celsius-scheduler/celsius/rules/eval"
	"github.com/celsius-scheduler/celsius/rules/typed"
)

// VAP is a table in the form of a Kubernetes ValidatingAdmissionPolicy with its binding, together with the rows that have no such form.
// Policy and Binding are nil if no row has such a form.
type VAP struct {
	Kind, Name string // kind and name of the table
	Policy     *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding    *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// LeftOut are the rows that only the webhook can check.
	LeftOut []LeftOut
}

// LeftOut is a row that is not part of the policy, with the cause.
type LeftOut struct{ Row, Why string }

// VAPs converts the tables that are active under the options.
func VAPs(o Options) ([]*VAP, error) {
	o = o.withDefaults()
	tables, err := o.tables()
	if err != nil {
		return nil, err
	}
	l, err := newLifecycles(o)
	if err != nil {
		return nil, err
	}
	r := Request{
		SchedulerNames: o.SchedulerNames, PolicyEvents: l.job.PolicyEvents(), PolicyActions: l.job.PolicyActions(),
		CommandActions: l.commandActions(),
	}
	var out []*VAP
	for _, shipped := range tables {
		for _, t := range shipped.all() {
			vap, err := t.renderVAP(r)
			if err != nil {
				return nil, err
			}
			out = append(out, vap)
		}
	}
	return out, nil
}

// vapVersion is the Kubernetes version of the written expressions: the first one with functions for cutting and joining lists.
func vapVersion() *version.Version { return version.MajorMinor(1, 34) }

// renderVAP writes the rows of a table that refuse objects. It leaves out rows that the API server's dialect cannot express: reads from the
// cluster, questions to the API server, and our functions. An absent field is zero in our dialect but an error in the API server's dialect.
// Therefore each read gets a default value.
func (t *Table) renderVAP(r Request) (*VAP, error) {
	env, err := vapEnv()
	if err != nil {
		return nil, err
	}
	w := &vapWriter{table: t, request: r, env: env, without: map[string]string{}}
	name := strings.ToLower(t.Kind) + "-" + t.Name + ".celsius.dev"
	if t.Name == strings.ToLower(t.Kind) { // the names of built-in tables
		name = t.Name + ".celsius.dev"
	}
	spec := w.spec()
	vap := &VAP{Kind: t.Kind, Name: t.Name, LeftOut: w.left}
	if len(spec.Validations) > 0 {
		vap.put(name, spec)
	}
	return vap, nil
}

// spec writes the specification of a policy.
func (w *vapWriter) spec() admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t, fail := w.table, admissionregistrationv1.Fail
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: t.constraints(), FailurePolicy: &fail}
	var unasked error // set if a match condition cannot be written, so that the API server cannot select the objects
	for _, row := range t.match {
		text, err := w.condition(row)
		if err != nil {
			w.leave(row.name, err)
			unasked = fmt.Errorf("is asked where %s holds only, which is left out", row.name)
			continue
		}
		spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: row.name, Expression: text})
	}
	w.variables(&spec)
	for _, row := range slices.Concat(t.bounds, t.validations) {
		if unasked != nil {
			w.leave(row.name, unasked)
			continue
		}
		w.validation(&spec, row)
	}
	for _, i := range t.includes {
		w.leave(i.name, fmt.Errorf("asks the rows of %ss", i.kind))
	}
	for _, row := range t.defaults {
		w.leave(row.name, errors.New("fills in"))
	}
	for _, g := range t.groups {
		w.leave(g.row.name, errors.New("fills in"))
	}
	for _, row := range t.warnings {
		w.leave(row.name, errors.New("warns"))
	}
	return spec
}

// put creates the policy and its binding.
func (v *VAP) put(name string, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	version, meta := admissionregistrationv1.SchemeGroupVersion.String(), metav1.ObjectMeta{Name: name}
	v.Policy = &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicy"}, ObjectMeta: meta, Spec: spec,
	}
	v.Binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ValidatingAdmissionPolicyBinding"}, ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// constraints returns which objects the policy checks: the same objects as the webhook.
func (t *Table) constraints() *admissionregistrationv1.MatchResources {
	kind := kinds()[t.Kind]
	operations := make([]admissionregistrationv1.OperationType, 0, len(t.operations()))
	for _, o := range t.operations() {
		operations = append(operations, admissionregistrationv1.OperationType(o))
	}
	scope := admissionregistrationv1.AllScopes
	return &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{kind.group.Group}, APIVersions: []string{kind.group.Version}, Scope: &scope,
				Resources: append([]string{kind.resource}, kind.subresources...),
			},
		}}},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn,
			Values: []string{metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"},
		}}},
	}
}

// vapEnv returns an environment with the functions that expressions of policies may call. The roots have no known type.
func vapEnv() (*cel.Env, error) {
	var roots []cel.EnvOption
	for _, root := range []string{"object", "oldObject", "request", "namespaceObject", "variables"} {
		roots = append(roots, cel.Variable(root, cel.DynType))
	}
	set, err := environment.MustBaseEnvSet(vapVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: vapVersion(), EnvOptions: roots,
	})
	if err != nil {
		return nil, fmt.Errorf("the expressions of Kubernetes: %w", err)
	}
	return set.NewExpressionsEnv(), nil
}

// vapWriter is the state of one renderVAP.
type vapWriter struct {
	table   *Table
	request Request
	env     *cel.Env
	// without maps variables that are not written to the cause. bare states that variables cannot be read at all.
	without map[string]string
	bare    bool
	// telling is true while a message is written. In a message a suggestion may be omitted.
	telling bool
	left    []LeftOut
}

func (w *vapWriter) leave(row string, why error) {
	w.left = append(w.left, LeftOut{Row: row, Why: why.Error()})
}

// The variables that contain the new and the old state of the object. A missing state is an empty object.
const (
	vapObject    = "theObject"
	vapOldObject = "theOldObject"
)

func orEmpty(root string) string { return "(" + root + " == null ? {} : " + root + ")" }

// condition writes one of matchConditions, which cannot read variables.
func (w *vapWriter) condition(r *row) (string, error) {
	w.bare = true
	defer func() { w.bare = false }()
	text, err := w.expr(r.expression)
	if err != nil {
		return "", err
	}
	return text, w.compiles(text)
}

// variables writes the variables of the table that can be written.
func (w *vapWriter) variables(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) {
	add := func(name, text string) {
		spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: name, Expression: text})
	}
	add(vapObject, orEmpty("object"))
	add(vapOldObject, orEmpty("oldObject"))
	for name, e := range w.table.variables.All() {
		text, err := w.expr(e)
		if err == nil {
			err = w.compiles(text)
		}
		if err != nil {
			w.without[name] = err.Error()
			continue
		}
		add(name, text)
	}
}

// validation writes a row as a variable that contains the message, or "" for a correct object.
func (w *vapWriter) validation(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, r *row) {
	text, err := w.told(r)
	if err == nil {
		err = w.compiles(text)
	}
	if err != nil {
		w.leave(r.name, err)
		return
	}
	told := "row_" + strings.ReplaceAll(r.name, "-", "_")
	invalid := metav1.StatusReasonInvalid
	spec.Variables = append(spec.Variables, admissionregistrationv1.Variable{Name: told, Expression: text})
	spec.Validations = append(spec.Validations, admissionregistrationv1.Validation{
		Expression: "variables." + told + " == ''", MessageExpression: "variables." + told, Reason: &invalid,
		Message: "row " + r.name + " of the rules of admission does not hold",
	})
}

// told writes an expression for the message of a row.
func (w *vapWriter) told(r *row) (string, error) {
	path, err := w.text(r.fieldPath)
	if err != nil {
		return "", err
	}
	w.telling = true
	message, err := w.text(r.message)
	w.telling = false
	if err != nil {
		return "", err
	}
	conditions := make([]string, 0, 2)
	if r.when != nil {
		when, err := w.expr(r.when)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, "("+when+")")
	}
	if r.expression != nil {
		holds, err := w.expr(r.expression)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, "!("+holds+")")
	}
	text := path + " + ': ' + " + message
	if len(conditions) > 0 {
		text = strings.Join(conditions, " && ") + " ? " + text + " : ''"
	}
	for i, loop := range slices.Backward(r.loops) {
		in, err := w.expr(loop.In())
		if err != nil {
			return "", err
		}
		item, index := loop.Names()
		if index == "" {
			index = fmt.Sprintf("number%d", i)
		}
		text = fmt.Sprintf("(%s).transformList(%s, %s, %s).filter(told, told != '').join('; ')", in, index, item, text)
	}
	if len(r.operations) > 0 {
		text = fmt.Sprintf("request.operation in [%s] ? (%s) : ''", quoted(r.operations...), text)
	}
	return text, nil
}

// text writes a text with CEL parts as a CEL expression for people.
func (w *vapWriter) text(t *typed.Text) (string, error) {
	var parts []string
	for fixed, e := range t.Parts() {
		if e == nil {
			parts = append(parts, strconv.Quote(fixed))
			continue
		}
		part, err := w.expr(e)
		if err != nil {
			return "", err
		}
		switch e.Type.Kind() {
		case types.StringKind:
			parts = append(parts, "("+part+")")
		case types.ListKind:
			parts = append(parts, "("+part+").map(said, string(said)).join(', ')")
		default:
			parts = append(parts, "string(dyn("+part+"))")
		}
	}
	return strings.Join(parts, " + "), nil
}

// compiles reports what a text uses that the API server's dialect lacks.
func (w *vapWriter) compiles(text string) error {
	_, issues := w.env.Compile(text)
	if issues.Err() == nil {
		return nil
	}
	first := issues.Errors()[0].Message
	for _, known := range []string{"undeclared reference to '", "found no matching overload for '"} {
		if rest, ok := strings.CutPrefix(first, known); ok {
			name, _, _ := strings.Cut(rest, "'")
			return fmt.Errorf("reads or calls %s, which Kubernetes does not have", name)
		}
	}
	return errors.New(first)
}

// edit replaces a part of a text. Its positions count runes.
type edit struct {
	from, to int
	text     string
}

// expr writes an expression in the API server's dialect.
func (w *vapWriter) expr(e *eval.Expr) (string, error) {
	checked := e.Checked()
	x := &vapExpr{vapWriter: w, ast: checked, source: []rune(e.Text.Value)}
	ast.PostOrderVisit(checked.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		switch kind := part.Kind(); {
		case kind == ast.SelectKind:
			x.selection(part)
		case kind == ast.IdentKind:
			x.root(part)
		case kind == ast.CallKind && w.telling && part.AsCall().FunctionName() == "nearest":
			x.unknown(part)
		case kind == ast.CallKind && part.AsCall().FunctionName() == "string" && !part.AsCall().IsMemberFunction():
			x.ofAnyType(part)
		case kind == ast.ComprehensionKind:
			c := part.AsComprehension()
			x.taken(c.IterVar(), c.IterVar2())
		}
	}))
	if x.err != nil {
		return "", x.err
	}
	return x.edited(), nil
}

// unknown replaces a call whose result a message can omit with an empty string.
func (x *vapExpr) unknown(call ast.Expr) {
	if from, to, ok := x.arguments(call); ok {
		x.edits = append(x.edits, edit{from - len("nearest"), to + 1, "''"})
	}
}

// ofAnyType wraps the argument of string() in dyn(). An amount of a resource, for example, is a string or a number. Kubernetes' checker
// takes the type from the default for an absent value, which is a string, and would refuse the number.
func (x *vapExpr) ofAnyType(call ast.Expr) {
	if from, to, ok := x.arguments(call); ok {
		x.edits = append(x.edits, edit{from + 1, from + 1, "dyn("}, edit{to, to, ")"})
	}
}

// arguments finds the parentheses of a call.
func (x *vapExpr) arguments(call ast.Expr) (from, to int, ok bool) {
	at, ok := x.ast.SourceInfo().GetOffsetRange(call.ID())
	if !ok || x.source[at.Start] != '(' {
		return 0, 0, false
	}
	depth, quote := 0, rune(0)
	for to := int(at.Start); to < len(x.source); to++ {
		switch c := x.source[to]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if depth == 0 && quote == 0 {
			return int(at.Start), to, true
		}
	}
	return 0, 0, false
}

// vapExpr is the conversion of one expression.
type vapExpr struct {
	*vapWriter
	ast    *ast.AST
	source []rune
	edits  []edit
	err    error
}

func (x *vapExpr) fail(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// edited returns the text with all edits applied.
func (x *vapExpr) edited() string {
	slices.SortStableFunc(x.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	x.edits = slices.Compact(x.edits)
	var out strings.Builder
	at := 0
	for _, e := range x.edits {
		if e.from < at {
			continue // an edit inside a loop that CEL has expanded
		}
		out.WriteString(string(x.source[at:e.from]) + e.text)
		at = e.to
	}
	out.WriteString(string(x.source[at:]))
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", " ")
}

// selection writes x.f so that an absent f reads as the zero value of its type.
func (x *vapExpr) selection(part ast.Expr) {
	s := part.AsSelect()
	of := x.ast.GetType(s.Operand().ID())
	at, ok := x.ast.SourceInfo().GetOffsetRange(part.ID())
	if s.IsTestOnly() || of.Kind() != types.StructKind || !ok {
		return
	}
	from, to := int(at.Start), int(at.Start)+1
	for to < len(x.source) && x.source[to] == ' ' {
		to++
	}
	to += len([]rune(s.FieldName()))
	switch of.TypeName() {
	case typed.VariablesType().TypeName():
		if why, missing := x.without[s.FieldName()]; missing {
			x.fail("%s", why)
		}
		if x.bare {
			x.fail("reads variables.%s where there are none yet", s.FieldName())
		}
		return
	case x.table.limits.Type().TypeName():
		begin, _ := x.ast.SourceInfo().GetOffsetRange(s.Operand().ID())
		x.edits = append(x.edits, edit{int(begin.Start), to, fmt.Sprint(x.table.limitValues[s.FieldName()])})
		return
	case x.table.user.Type().TypeName():
		begin, _ := x.ast.SourceInfo().GetOffsetRange(s.Operand().ID())
		as := map[string]string{"name": "request.userInfo.?username.orValue('')", "groups": "request.userInfo.?groups.orValue([])"}[s.FieldName()]
		x.edits = append(x.edits, edit{int(begin.Start), to, as})
		return
	}
	x.edits = append(x.edits, edit{from, to, ".?" + s.FieldName() + ".orValue(" + zeroOf(x.ast.GetType(part.ID())) + ")"})
}

// zeroOf writes the default for an absent value.
func zeroOf(t *cel.Type) string {
	zero, ok := map[types.Kind]string{
		types.StringKind: "''", types.IntKind: "0", types.DoubleKind: "0.0", types.BoolKind: "false", types.ListKind: "[]", types.MapKind: "{}",
		types.StructKind: "{}",
	}[t.Kind()]
	if !ok {
		return "null"
	}
	return zero
}

// rootTexts returns how our roots are written. Other roots are read from the cluster.
func (w *vapWriter) rootTexts() map[string]string {
	out := map[string]string{
		"object": "variables." + vapObject, "oldObject": "variables." + vapOldObject, "operation": "request.operation",
		"namespaceAnnotations": "namespaceObject.?metadata.?annotations.orValue({})", "variables": "variables",
		"schedulerNames": "[" + quoted(w.request.SchedulerNames...) + "]", "policyEvents": "[" + quoted(w.request.PolicyEvents...) + "]",
		"policyActions": "[" + quoted(w.request.PolicyActions...) + "]",
	}
	if w.bare {
		out["object"], out["oldObject"] = orEmpty("object"), orEmpty("oldObject")
	}
	actions := make([]string, 0, len(w.request.CommandActions))
	for _, kind := range slices.Sorted(maps.Keys(w.request.CommandActions)) {
		actions = append(actions, quoted(kind)+": ["+quoted(w.request.CommandActions[kind]...)+"]")
	}
	out["commandActions"] = "{" + strings.Join(actions, ", ") + "}"
	return out
}

// root writes the name of a root that all rows can read.
func (x *vapExpr) root(part ast.Expr) {
	name := part.AsIdent()
	if _, ours := vapRoots()[name]; !ours {
		return // it is the variable of a loop
	}
	at, ok := x.ast.SourceInfo().GetOffsetRange(part.ID())
	text, written := x.rootTexts()[name]
	switch {
	case written && ok:
		x.edits = append(x.edits, edit{int(at.Start), int(at.Start) + len([]rune(name)), text})
	case name == "limits":
	case name == "user":
		if x.calls("may") {
			x.fail("asks the API server what the user may do")
		}
	default:
		x.fail("reads %s, which %s", name, vapRoots()[name])
	}
}

// vapRoots returns the roots of rows. The value is the cause why a root is not written, or "".
func vapRoots() map[string]string {
	const cluster, ours = "is looked up in the cluster", "is known to the webhook alone"
	return map[string]string{
		"object": "", "oldObject": "", "operation": "", "namespaceAnnotations": "", "variables": "", "schedulerNames": "", "policyEvents": "",
		"policyActions": "", "commandActions": "", "limits": "", "user": "", "queues": cluster, "related": cluster, "jobTemplates": cluster,
		"jobPlugins": ours, "pluginMistakes": ours,
	}
}

// calls reports whether the expression calls a function.
func (x *vapExpr) calls(name string) bool {
	found := false
	ast.PostOrderVisit(x.ast.Expr(), ast.NewExprVisitor(func(part ast.Expr) {
		found = found || part.Kind() == ast.CallKind && part.AsCall().FunctionName() == name
	}))
	return found
}

// taken refuses loops whose variables hide a root.
func (x *vapExpr) taken(names ...string) {
	for _, name := range names {
		if _, hides := vapRoots()[name]; hides {
			x.fail("calls something in a loop %s, which all rows see", name)
		}
	}
}
