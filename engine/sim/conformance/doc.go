// Package conformance replays cases that were recorded from Volcano and compares what is decided
// here with what was observed there.
//
//	cases/*.json, derived/*.jsonl --Load--> Case --why not--> skipped, with the reason
//	                                         |
//	      config --policy.Convert--> Policy  |  input --model deltas--> Cluster
//	                                    \    |    /
//	             mode actions:  engine.Decide --> Outcome --compare--+
//	             mode calls:    policy's sites --> answers --compare--+--> Result --> tables, verdict
//	                                                                 |
//	      deliberate.yaml: differences that are meant, each with its mark
//
// Configurations become policies by policy.Convert and by nothing else. Which plugins and actions exist is
// asked of the policy package, not known here. Where Volcano's own outcome varies, or best scores tie, what
// was the same in all of its runs is compared.
package conformance
