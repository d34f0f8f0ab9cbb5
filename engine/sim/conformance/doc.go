// Package conformance replays cases that were recorded from Volcano and compares what is decided
// here with what was observed there.
//
//	cases/*.json, derived/*.jsonl, tables/scores.jsonl --Load--> Case --why not--> skipped, with the reason
//	                                         |
//	      config --volcano.Convert--> Policy  |  input --model deltas--> Cluster
//	                                    \    |    /
//	             mode actions:  engine.Decide --> Outcome --compare--+
//	             mode calls:    policy's sites --> answers --compare--+--> Result --> tables, verdict
//	             mode scores:   one table's scores --compare---------+
//	                                                                 |
//	      deliberate.yaml: differences that are meant, each with its mark
//
// Configurations become policies by volcano.Convert and by nothing else, and what Convert says is lost decides what is
// skipped: which plugins, arguments and actions exist is not known here. A lost action that evicts matters only to cases in
// which one evicted, or could have; the others are replayed without it. Where Volcano's own outcome varies, or best scores tie, what
// was the same in all of its runs is compared.
package conformance
