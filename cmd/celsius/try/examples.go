package try

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"
)

// Example is a starting point: the content of the page's fields.
type Example struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	// Command is the command in a document, or "".
	Command string `json:"command,omitempty"`
	Policy  string `json:"policy"`
	World   string `json:"world"`
	Cycles  int    `json:"cycles,omitempty"`
	Until   string `json:"until,omitempty"`
	Now     string `json:"now,omitempty"`
	// Shown is the output of the command in the document.
	Shown string `json:"-"`
}

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	yamlBlock    = regexp.MustCompile("(?s)```yaml\n(apiVersion: .*?)```")
	simulated    = regexp.MustCompile(`^(?:go run \./cmd/)?(celsius simulate [^\n]*)\n`)
)

// sampleWorld is the world for policies that are shown without one.
const sampleWorld = "samples/quickstart/cluster.yaml"

// Examples returns the examples of a repository: the simulations in documents, the policies and worlds in documents, and the sample
// policies and scenarios. It omits commands on files that the reader must write.
func Examples(root fs.FS) ([]Example, error) {
	documents, err := fs.Glob(root, "docs/*.md")
	if err != nil {
		return nil, fmt.Errorf("find documents: %w", err)
	}
	world, err := fs.ReadFile(root, sampleWorld)
	if err != nil {
		return nil, fmt.Errorf("read the sample world: %w", err)
	}
	var out []Example
	for _, name := range append([]string{"README.md"}, documents...) {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return nil, fmt.Errorf("read a document: %w", err)
		}
		commands, err := shownCommands(root, name, string(text))
		if err != nil {
			return nil, err
		}
		out = append(append(out, commands...), shownObjects(name, string(text), string(world))...)
	}
	samples, err := samplePolicies(root, string(world))
	if err != nil {
		return nil, err
	}
	scenarios, err := sampleScenarios(root)
	return slices.Concat(out, samples, scenarios), err
}

// shownCommands returns the simulations in a document.
func shownCommands(root fs.FS, name, text string) ([]Example, error) {
	var out []Example
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		for _, command := range strings.Split(block[1], "$ ")[1:] {
			m := simulated.FindStringSubmatch(command)
			if m == nil {
				continue
			}
			e := Example{Group: name, Command: m[1], Shown: strings.TrimPrefix(command, m[0])}
			there, err := e.read(root, strings.Fields(m[1])[2:])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, m[1], err)
			}
			if there {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// read fills an example from the arguments of a command. It returns false if a file does not exist, or if the command is another
// simulation, such as that of a trace.
func (e *Example) read(root fs.FS, args []string) (bool, error) {
	var worlds, names []string
	for len(args) > 0 {
		arg, value := args[0], ""
		args = args[1:]
		if strings.HasPrefix(arg, "--") && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		switch arg {
		case "--until":
			e.Until = value
		case "--now":
			e.Now = value
		case "--cycles":
			n, err := strconv.Atoi(value)
			if err != nil {
				return false, fmt.Errorf("--cycles %s is no number", value)
			}
			e.Cycles = n
		case "--policy":
			text, err := fs.ReadFile(root, value)
			if err != nil {
				return false, fmt.Errorf("read the policy: %w", err)
			}
			e.Policy = string(text)
			names = append(names, "by "+strings.TrimSuffix(path.Base(value), ".yaml"))
		default:
			if strings.HasPrefix(arg, "-") {
				return false, fmt.Errorf("the page has no %s", arg)
			}
			text, err := fs.ReadFile(root, arg)
			if err != nil {
				return false, nil //nolint:nilerr // a file that the reader writes
			}
			worlds = append(worlds, string(text))
			names = slices.Insert(names, 0, strings.TrimSuffix(path.Base(arg), ".yaml"))
		}
	}
	e.World, e.Name = strings.Join(worlds, "---\n"), strings.Join(names, " ")
	return true, nil
}

// shownObjects returns the complete policies and worlds in a document.
func shownObjects(name, text, world string) []Example {
	var out []Example
	for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
		e := Example{Group: name}
		switch {
		case strings.Contains(block[1], "kind: SchedulingPolicy"):
			e.Policy, e.World, e.Name = block[1], world, "a policy"
		case strings.Contains(block[1], "kind: World"):
			e.World, e.Name = block[1], "a world"
		default:
			continue // a part of a policy, or of a program
		}
		if n := len(out) + 1; n > 1 {
			e.Name += " " + strconv.Itoa(n)
		}
		out = append(out, e)
	}
	return out
}

// samplePolicies returns the sample policies that are useful alone, in the sample world.
func samplePolicies(root fs.FS, world string) ([]Example, error) {
	files, err := fs.Glob(root, "samples/policies/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("find the sample policies: %w", err)
	}
	var out []Example
	for _, file := range files {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, fmt.Errorf("read a sample policy: %w", err)
		}
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		out = append(out, Example{Group: "samples/policies", Name: name, Policy: string(text), World: world})
	}
	return out, nil
}

// sampleScenarios returns the sample scenarios. A scenario without a policy gets the sample policy that it names.
func sampleScenarios(root fs.FS) ([]Example, error) {
	var out []Example
	err := fs.WalkDir(root, "samples/scenarios", func(file string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".txtar" {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".txtar"), "_", " ")
		e := Example{Group: path.Dir(file), Name: name, World: string(text)}
		holds := func(name string) bool {
			return slices.ContainsFunc(txtar.Parse(text).Files, func(f txtar.File) bool { return f.Name == name })
		}
		for line := range strings.Lines(string(txtar.Parse(text).Comment)) {
			name, named := strings.CutPrefix(strings.TrimSpace(line), "policy ")
			if !named || holds(name) {
				continue
			}
			policy, err := fs.ReadFile(root, "samples/policies/"+name+".yaml")
			if err != nil {
				return fmt.Errorf("%s names the policy %s: %w", file, name, err)
			}
			e.Policy = string(policy)
		}
		out = append(out, e)
		return nil
	})
	slices.SortStableFunc(out, func(a, b Example) int { return cmp.Compare(a.Group, b.Group) })
	if err != nil {
		return nil, fmt.Errorf("read the sample scenarios: %w", err)
	}
	return out, nil
}
