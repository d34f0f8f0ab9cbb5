package conformance

import (
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/volcano"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// hierarchyFlag is the only flag that sets a param instead of switching sections.
const hierarchyFlag = "enableHierarchy"

// hierarchical is the plugin to which a derived case's hierarchyEnabled applies.
const hierarchical = "capacity"

// conf reads the case's configuration.
func (c *Case) conf() (volcano.Conf, error) {
	whole := map[string]any{"actions": c.actions()}
	if c.Config.Tiers != nil {
		whole["tiers"] = c.Config.Tiers
	}
	if c.Config.Configurations != nil {
		whole["configurations"] = c.Config.Configurations
	}
	text, err := json.MarshalIndent(whole, "", " ")
	if err != nil {
		return volcano.Conf{}, err
	}
	docs, issues := source.Parse(c.ID+" (configuration)", text)
	if err := issues.Err(); err != nil {
		return volcano.Conf{}, err
	}
	conf := volcano.Read(docs[0].Root, &issues)
	if c.Config.HierarchyEnabled {
		for _, tier := range conf.Tiers {
			for i := range tier {
				if tier[i].Name == hierarchical {
					tier[i].Flags = append(tier[i].Flags, on(hierarchyFlag))
				}
			}
		}
	}
	return conf, issues.Err()
}

// on returns a flag that is true.
func on(flag string) source.Field {
	docs, _ := source.Parse("hierarchyEnabled", []byte("true"))
	return source.Field{Name: flag, Value: docs[0].Root}
}

// convert converts the case's configuration to a SchedulingPolicy. In cases, a missing flag is off. In derived cases, all flags are
// present.
func (r *Runner) convert(c *Case) (*volcano.Conversion, error) {
	conf, err := c.conf()
	if err != nil {
		return nil, err
	}
	return volcano.Convert(conf, volcano.Options{Name: "recorded", Flags: volcano.FlagsExplicit, Tables: r.tables, Actions: r.actions})
}

// policy compiles the case's configuration. Many cases have the same one.
func (r *Runner) policy(c *Case) (*policy.Policy, error) {
	converted, err := r.convert(c)
	if err != nil {
		return nil, err
	}
	text := r.withStubs(converted.Policy)
	if r.Rewrite != nil {
		if text, err = r.Rewrite(text); err != nil {
			return nil, err
		}
	}
	if p := r.compiled[string(text)]; p != nil {
		return p, nil
	}
	docs, issues := source.Parse(c.ID+" (converted)", text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	p, issues := policy.Load(docs[0])
	if err := issues.Err(); err != nil {
		return nil, err
	}
	r.compiled[string(text)] = p
	return p, nil
}

// plugins returns the names of the plugins in the case's tiers, each once.
func (c *Case) plugins() []string {
	var tiers []struct {
		Plugins []struct {
			Name string
		}
	}
	if c.Config.Tiers == nil || json.Unmarshal(c.Config.Tiers, &tiers) != nil {
		return nil
	}
	var out []string
	for _, t := range tiers {
		for _, p := range t.Plugins {
			if !slices.Contains(out, p.Name) {
				out = append(out, p.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// customPlugins returns plugins that exist only in the recorded tests and have no stub, so that they are not supported yet.
func customPlugins() []string {
	return []string{"device-fit-after-eviction", "test-empty-gradient"}
}

// whyNot returns why a case cannot be replayed, or "". The reason is short, because it is counted by its text.
func (r *Runner) whyNot(c *Case) string {
	in := c.Input
	switch {
	case c.Scored != nil:
		return r.notConverted(c)
	case c.Mode == "session-dump":
		return "session dump: objects that only the cache had are missing"
	case c.Mode == "open-only":
		return "nothing was asked: the session was only opened"
	case len(in.HyperNodes)+len(in.HyperNodeInfo) > 0:
		return "HyperNodes are not there yet"
	case len(in.ResourceSlices)+len(in.DeviceClasses)+len(in.ResourceClaims) > 0:
		return "resource claims (DRA) are not scheduled"
	case in.Sharding != nil || !slices.Contains([]string{"", "none"}, c.Config.ServerOptions.ShardingMode):
		return "shards are not there yet"
	}
	for _, p := range c.plugins() {
		if slices.Contains(customPlugins(), p) {
			return "custom plugin " + p
		}
	}
	if why := r.notConverted(c); why != "" {
		return why
	}
	if r.twoOwners(c) {
		return "two plugins own one quota, which is refused"
	}
	return c.unanswerable()
}

// twoOwners reports whether the only mistakes in the case's configuration are two tables that compute the same fields. Volcano accepts such
// a configuration, and both count.
func (r *Runner) twoOwners(c *Case) bool {
	_, err := r.policy(c)
	issues := source.Issues(nil)
	return errors.As(err, &issues) && ownedTwice(issues)
}

// ownedTwice reports whether all mistakes are of this type.
func ownedTwice(issues source.Issues) bool {
	return !slices.ContainsFunc(issues, func(i source.Issue) bool { return i.Severity == source.Error && i.Hint != policy.TwoOwners })
}

// unanswerable returns which of the case's calls cannot be asked, or "".
func (c *Case) unanswerable() string {
	if c.Mode != "calls" {
		return ""
	}
	for _, call := range c.Observed.TestCalls {
		switch {
		case call.Fn == victimTasks:
		case call.String() == call.Fn:
			return "call of nothing: it names no object"
		case !answerable(call.Fn):
			return "call " + call.Fn + " is not there yet"
		}
	}
	return ""
}

// notConverted returns which part of the case's configuration is not supported yet, or "" if everything that matters to the case is.
func (r *Runner) notConverted(c *Case) string {
	if why := r.lost(c); why != "" {
		return why + " is not there yet"
	}
	return r.missingTerm(c)
}

// lost returns the first part that the configuration loses in its conversion and that matters to the case. A configuration that cannot be
// converted loses nothing: it fails.
func (r *Runner) lost(c *Case) string {
	converted, err := r.convert(c)
	if err != nil {
		return ""
	}
	for _, n := range converted.Notes {
		if n.Lost == "" {
			continue
		}
		matters, known := unless()[n.Lost]
		if !known || matters(c) {
			return n.Lost
		}
	}
	return ""
}

// unless contains, for parts that may be lost, when they matter to a case. All other parts always matter.
func unless() map[string]func(*Case) bool {
	return map[string]func(*Case) bool{
		// Without HyperNodes, all nodes get the same score from it, and it has no other effect.
		"plugin network-topology-aware": func(c *Case) bool { return c.Scored != nil || len(c.Input.HyperNodes)+len(c.Input.HyperNodeInfo) > 0 },
	}
}

// term is a feature that a pod can request, and the plugin argument that shows that the plugin's table supports it.
type term struct {
	plugin, argument string
	asked            func(*corev1.PodSpec) bool
}

func terms() []term {
	spread := func(s *corev1.PodSpec) bool { return len(s.TopologySpreadConstraints) > 0 }
	affinity := func(s *corev1.PodSpec) bool {
		return s.Affinity != nil && (s.Affinity.PodAffinity != nil || s.Affinity.PodAntiAffinity != nil)
	}
	return []term{
		{"nodeorder", "podtopologyspread.weight", spread},
		{"nodeorder", "podaffinity.weight", affinity},
		{"predicates", "predicate.PodTopologySpreadEnable", spread},
		{"predicates", "predicate.PodAffinityEnable", affinity},
	}
}

// missingTerm returns the first feature that a pod of the case requests and that a plugin of the case does not support here yet.
func (r *Runner) missingTerm(c *Case) string {
	plugins := c.plugins()
	for _, x := range terms() {
		if !slices.Contains(plugins, x.plugin) || volcano.Takes(r.tables[x.plugin], x.argument) {
			continue
		}
		if slices.ContainsFunc(c.Input.Pods, func(p *corev1.Pod) bool { return x.asked(&p.Spec) }) {
			return x.plugin + ": what " + x.argument + " is about is not there yet"
		}
	}
	return ""
}
