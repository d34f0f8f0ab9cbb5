package jobplugin

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// param is a parameter for which a Job may give an argument to a plugin.
type param struct {
	name, flag, doc string
	kind            string // string, int or bool
	otherwise       ref.Val
	min, max        *int64
	pattern         string // pattern of the whole text, as its author wrote it; "": any text
	matches         *regexp.Regexp
}

// paramTypes are the types that a parameter may have.
var paramTypes = map[string]*cel.Type{ //nolint:gochecknoglobals // a table that never changes
	"string": cel.StringType, "int": cel.IntType, "bool": cel.BoolType,
}

func paramsType() *cel.Type { return cel.ObjectType("Params") }

// paramsObject declares the parameters of a plugin.
func paramsObject(params []*param) *rules.Object {
	o := &rules.Object{Name: paramsType().TypeName(), Type: paramsType()}
	for _, p := range params {
		o.Members = append(o.Members, &rules.Member{
			Name: p.name, Type: paramTypes[p.kind], Doc: p.doc, Changes: rules.ByObject,
			Get: func(of any) ref.Val {
				got, ok := of.(map[string]ref.Val)
				if !ok {
					return types.NewErr("no parameters")
				}
				return got[p.name]
			},
		})
	}
	return o
}

func (c *compiler) readParams(v source.Value) (out []*param) {
	flags := map[string]bool{}
	for _, item := range c.section(v) {
		item.Fields(keysOf(partParam), &c.issues)
		c.need(item, "name", "flag", "type", "default")
		p := &param{
			name: c.unique(item.Get("name")), flag: item.Get("flag").String(&c.issues), kind: item.Get("type").String(&c.issues),
			doc: item.Get("description").String(&c.issues),
		}
		if at := item.Get("flag"); p.flag != "" {
			if flags[p.flag] {
				c.report(at.Issuef("give it a flag of its own", "another parameter has the flag %q", p.flag))
				continue
			}
			flags[p.flag] = true
			if strings.HasPrefix(p.flag, "-") || strings.ContainsAny(p.flag, "= \t\n") {
				c.report(at.Issuef("write the word alone, such as port for --port", "%q cannot be a flag", p.flag))
				continue
			}
		} else if at.Exists() {
			c.report(at.Issuef("write a word, such as port for --port", "the flag is empty"))
		}
		if paramTypes[p.kind] == nil {
			c.report(item.Get("type").Issuef("write string, int or bool", "there is no type %q of a parameter", p.kind))
			continue
		}
		if p.kind == "int" {
			p.min, p.max = c.bound(item.Get("min")), c.bound(item.Get("max"))
		}
		if at := item.Get("pattern"); at.Exists() {
			p.pattern = at.String(&c.issues)
			if _, err := regexp.Compile(p.pattern); err != nil {
				c.report(at.Issuef("", "it is no regular expression: %v", err))
				continue
			}
			p.matches = regexp.MustCompile("^(?:" + p.pattern + ")$")
		}
		var err error
		if p.otherwise, err = p.read(fmt.Sprint(item.Get("default").Any())); err != nil {
			c.report(item.Get("default").Issuef("", "the default %v", err))
		}
		out = append(out, p)
	}
	return out
}

func (c *compiler) bound(v source.Value) *int64 {
	if !v.Exists() {
		return nil
	}
	n := v.Int(&c.issues)
	return &n
}

// read parses a value. The error quotes the value and states what would be correct.
func (p *param) read(text string) (ref.Val, error) {
	switch p.kind {
	case "bool":
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("is %q; write true or false", cut(text))
		}
		return types.Bool(yes), nil
	case "int":
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil || p.min != nil && n < *p.min || p.max != nil && n > *p.max {
			return nil, fmt.Errorf("is %q; write a whole number%s", cut(text), p.within())
		}
		return types.Int(n), nil
	}
	if p.matches != nil && !p.matches.MatchString(text) {
		return nil, fmt.Errorf("is %q; write what matches %s", cut(text), p.pattern)
	}
	return types.String(text), nil
}

func (p *param) within() string {
	switch {
	case p.min != nil && p.max != nil:
		return fmt.Sprintf(" from %d to %d", *p.min, *p.max)
	case p.min != nil:
		return fmt.Sprintf(" from %d", *p.min)
	case p.max != nil:
		return fmt.Sprintf(" up to %d", *p.max)
	}
	return ""
}

// mostWrong is the maximum number of reported mistakes in one plugin's arguments.
const mostWrong = 10

// parse parses arguments in the same way as Go's command lines: --flag=value, --flag value, one dash or two, a bool flag alone. It returns
// the value of each parameter, and the mistakes. It ignores arguments that it cannot read.
func (p *Plugin) parse(args []string) (values map[string]ref.Val, wrong []string) {
	values = map[string]ref.Val{}
	set := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	more := 0
	tell := func(text string) {
		if len(wrong) < mostWrong {
			wrong = append(wrong, text)
		} else {
			more++
		}
	}
	for _, param := range p.params {
		values[param.name] = param.otherwise
		read := func(text string) error {
			v, err := param.read(text)
			if err != nil {
				tell(fmt.Sprintf("--%s %v", param.flag, err))
				return nil
			}
			values[param.name] = v
			return nil
		}
		if param.kind == "bool" {
			set.BoolFunc(param.flag, "", read)
		} else {
			set.Func(param.flag, "", read)
		}
	}
	for rest := args; len(rest) > 0; {
		err := set.Parse(rest)
		left := set.Args()
		switch {
		case err != nil && len(left) < len(rest) && (len(left) == 0 || !malformed(left[0])): // the last argument that was read is wrong
			tell(p.explain(rest[len(rest)-len(left)-1], err))
		case len(left) > 0: // the argument is not a flag, or is malformed
			tell(p.explain(left[0], nil))
			left = left[1:]
		}
		rest = left
	}
	if more > 0 {
		wrong = append(wrong, fmt.Sprintf("and %d more", more))
	}
	return values, wrong
}

// malformed reports whether Go's parser of command lines stops at an argument, because no name follows its dashes.
func malformed(arg string) bool {
	name, dashes := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), strings.HasPrefix(arg, "-")
	return dashes && arg != "-" && arg != "--" && (strings.HasPrefix(name, "-") || strings.HasPrefix(name, "="))
}

// cut shortens a user's text for a message.
func cut(text string) string {
	const most = 40
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// explain returns what is wrong with an argument that cannot be read.
func (p *Plugin) explain(arg string, err error) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	var flags []string
	for _, param := range p.params {
		flags = append(flags, "--"+param.flag)
		if param.flag == name && err != nil {
			return fmt.Sprintf("--%s has no value; write --%[1]s=VALUE", name)
		}
	}
	if len(flags) == 0 {
		return fmt.Sprintf("%q is no argument of the plugin, which has none", cut(arg))
	}
	hint := "it has " + strings.Join(flags, ", ")
	if near := source.Nearest("--"+cut(name), flags); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fmt.Sprintf("%q is no argument of the plugin; %s", cut(arg), hint)
}
