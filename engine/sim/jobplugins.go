package sim

import (
	"maps"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// jobPlugins contains the plugins for the Jobs of a world: the built-in ones, and the world's JobPlugins, which may replace built-in ones.
type jobPlugins struct {
	own map[string]*source.Document // the JobPlugins, by name
	set *jobplugin.Set              // nil: the built-in ones
}

// add adds JobPlugins. A JobPlugin replaces one with the same name. Earlier copies of p do not change.
func (p *jobPlugins) add(more []manifest.Uncompiled) (issues source.Issues) {
	if len(more) == 0 {
		return nil
	}
	all, docs := map[string]*source.Document{}, []*source.Document(nil)
	maps.Copy(all, p.own)
	for _, m := range more {
		all[m.Name] = m.Doc
	}
	for _, name := range sortedKeys(all) {
		docs = append(docs, all[name])
	}
	set, _, issues := jobplugin.LoadDocuments(docs...)
	if issues.Err() == nil {
		p.own, p.set = all, set
	}
	return issues
}
