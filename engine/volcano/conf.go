package volcano

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// Conf is a Volcano scheduler's configuration, as read by Read.
type Conf struct {
	// Actions are the names of the pipeline, each with its position.
	Actions        []source.Text
	Tiers          [][]Plugin
	Configurations []Action
	// Metrics states from where Volcano reads the measured load; absent if the author did not write it.
	Metrics source.Value
	// At is the whole configuration.
	At source.Value
}

// Plugin is one plugin of a tier. Flags contains only flags that the author wrote.
type Plugin struct {
	Name      string
	Flags     []source.Field // enableJobOrder and similar flags
	Arguments []source.Field
	At        source.Value
}

// Action contains the arguments of one action.
type Action struct {
	Name      source.Text
	Arguments []source.Field
}

// confSuffix is the suffix of the key under which a ConfigMap contains a configuration.
const confSuffix = ".conf"

// Parse reads a configuration from a file. The file contains the configuration itself, or one ConfigMap among any manifests that contains
// it under a key with the suffix .conf. The issues have positions in the file, also for a literal block in a ConfigMap. For a quoted text
// they have positions inside the text.
func Parse(file string, data []byte) (Conf, source.Issues) {
	docs, issues := source.Parse(file, data)
	if issues.Err() != nil {
		return Conf{}, issues
	}
	var found []source.Value
	for _, d := range docs {
		found = append(found, confsIn(d.Root, &issues)...)
	}
	switch {
	case issues.Err() != nil:
	case len(found) == 0:
		issues = append(issues, source.Issue{
			File: file, Message: "there is no Volcano configuration in it",
			Hint: "give the configuration, or a ConfigMap that holds it under a key that ends in " + confSuffix,
		})
	case len(found) > 1:
		issues = append(issues, found[1].Issuef("give one of them", "a second configuration; the first is at %s", placeOf(found[0])))
	default:
		return Read(found[0], &issues), issues
	}
	return Conf{}, issues
}

func placeOf(v source.Value) string {
	line, col := v.Pos()
	return fmt.Sprintf("%s:%d:%d", v.Document().File, line, col)
}

// confsIn returns the configurations in a document: the document itself, unless it is an object of Kubernetes; otherwise those in it.
func confsIn(v source.Value, issues *source.Issues) []source.Value {
	kind := v.Get("kind")
	switch {
	case v.Kind() != source.Map || !kind.Exists():
		return []source.Value{v}
	case v.Get("items").Exists():
		var out []source.Value
		for _, item := range v.Get("items").Items(issues) {
			if item.Get("kind").Exists() {
				out = append(out, confsIn(item, issues)...)
			}
		}
		return out
	case kind.Any() != "ConfigMap":
		return nil
	}
	var out []source.Value
	for _, f := range v.Get("data").Fields(nil, issues) {
		if !strings.HasSuffix(f.Name, confSuffix) {
			continue
		}
		docs, inside := source.Parse(embedded(f.Value, f.Name, issues))
		*issues = append(*issues, inside...)
		for _, d := range docs {
			out = append(out, d.Root)
		}
	}
	return out
}

// embedded returns the text of a field as a file of its own. If the lines of the text are lines of the file, as in a literal block, they
// keep their line numbers. So positions inside are positions of the file.
func embedded(v source.Value, key string, issues *source.Issues) (file string, data []byte) {
	text := v.Text(issues)
	file = v.Document().File
	first, column := text.Place(0)
	var b strings.Builder
	b.WriteString(strings.Repeat("\n", max(first-1, 0)))
	offset, n := 0, 0
	for line := range strings.Lines(text.Value) {
		if at, col := text.Place(offset); strings.TrimSpace(line) != "" && (at != first+n || col != column) || strings.HasPrefix(line, "---") ||
			strings.HasPrefix(line, "%") {
			return fmt.Sprintf("%s (%s)", file, key), []byte(text.Value)
		}
		if strings.TrimSpace(line) != "" {
			b.WriteString(strings.Repeat(" ", column-1))
		}
		b.WriteString(line)
		offset += len([]rune(line))
		n++
	}
	return file, []byte(b.String())
}

// Read reads the mapping of actions, tiers and configurations. Unknown keys are issues.
func Read(v source.Value, issues *source.Issues) Conf {
	conf := Conf{At: v}
	for _, f := range v.Fields([]string{"actions", "tiers", "configurations", "metrics"}, issues) {
		switch f.Name {
		case "actions":
			conf.Actions = actionNames(f.Value, issues)
		case "metrics":
			conf.Metrics = f.Value
		case "tiers":
			for _, tier := range f.Value.Items(issues) {
				conf.Tiers = append(conf.Tiers, readTier(tier, issues))
			}
		case "configurations":
			for _, item := range f.Value.Items(issues) {
				a, before := Action{}, len(*issues)
				for _, k := range item.Fields([]string{"name", "arguments"}, issues) {
					if k.Name == "name" {
						a.Name = k.Value.Text(issues)
					} else if k.Value.Kind() != source.Null {
						a.Arguments = k.Value.Fields(nil, issues)
					}
				}
				if !a.Name.Written() {
					if len(*issues) == before { // a misspelt "name" is one mistake
						*issues = append(*issues, item.Issuef("add name: the action that the arguments are for", "name is missing"))
					}
					continue
				}
				conf.Configurations = append(conf.Configurations, a)
			}
		}
	}
	return conf
}

// actionNames returns the items of a list, or of one string with commas, each with its position.
func actionNames(v source.Value, issues *source.Issues) []source.Text {
	var out []source.Text
	if v.Kind() == source.List {
		for _, item := range v.Items(issues) {
			out = append(out, trimmed(item.Text(issues)))
		}
		return out
	}
	if v.Kind() == source.Null {
		return nil
	}
	text := v.Text(issues)
	offset := 0
	for part := range strings.SplitSeq(text.Value, ",") {
		end := offset + len([]rune(part))
		if word := trimmed(text.Slice(offset, end)); word.Value != "" {
			out = append(out, word)
		}
		offset = end + 1
	}
	return out
}

// trimmed returns a text without the white space around it.
func trimmed(t source.Text) source.Text {
	start := len([]rune(t.Value)) - len([]rune(strings.TrimLeft(t.Value, " \t\r\n")))
	return t.Slice(start, start+len([]rune(strings.TrimSpace(t.Value))))
}

// words reads a list of strings, or one string with commas.
func words(v source.Value, issues *source.Issues) []string {
	if v.Kind() == source.List {
		return v.Strings(issues)
	}
	var out []string
	for w := range strings.SplitSeq(v.String(issues), ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func readTier(tier source.Value, issues *source.Issues) []Plugin {
	var out []Plugin
	known := slices.Concat([]string{"name", "arguments", hierarchyFlag}, slices.Sorted(maps.Keys(flagSections())), idleFlags())
	for _, f := range tier.Fields([]string{"plugins"}, issues) {
		for _, item := range f.Value.Items(issues) {
			p, before := Plugin{At: item}, len(*issues)
			for _, k := range item.Fields(known, issues) {
				switch {
				case k.Name == "name":
					p.Name = k.Value.String(issues)
				case k.Name != "arguments":
					p.Flags = append(p.Flags, k)
				case k.Value.Kind() != source.Null:
					p.Arguments = k.Value.Fields(nil, issues)
				}
			}
			if p.Name != "" || len(*issues) == before { // a misspelt "name" is one mistake, and not also an unknown plugin
				out = append(out, p)
			}
		}
	}
	return out
}
