// Package conformance replays cases that were recorded from Volcano, and compares the decisions here with the recorded ones.
//
//	cases/*.json, derived/*.jsonl, tables/scores.jsonl --Load--> Case --why not--> skipped, with the reason
//	                                         |
//	      config --volcano.Convert--> Policy  |  input --model deltas--> Cluster
//	                                    \    |    /
//	             mode actions:  engine.Decide --> Outcome --compare--+
//	             mode calls:    policy's sites --> answers --compare--+--> Result --> tables, verdict
//	             mode scores:   one table's scores --compare---------+
//	                                                                 |
//	      deliberate.yaml: intended differences, each with its mark
//
// Only volcano.Convert converts configurations to policies, and the parts that it loses decide which cases are skipped. This package does
// not know which plugins, arguments and actions exist. A lost action that evicts matters only to cases in which it evicted a pod, or could
// have. Other cases are replayed without it. If Volcano's own outcome varies, or best scores tie, the comparison covers what was equal in
// all of its runs.
package conformance
