package sim

import (
	"maps"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// jobPlugins are those that Jobs of a world may ask for: the shipped ones, and beside them or in their stead those of its JobPlugins.
type jobPlugins struct {
	own map[string]*source.Document // the JobPlugins, by name
	set *jobplugin.Set              // nil: the shipped ones
}

// add adds JobPlugins, each in the place of one of its name. Copies that were made before stay as they are.
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
