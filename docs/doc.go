// Package docs writes the reference of the rule language, of the lifecycles and of the metrics from what the compiler knows.
//
//	policy.Vocabulary, Sites, Roots, Verbs, Shape --+
//	rules.Libraries, Operators, keys of rows -------+--Files--> rule-language.md
//	rules/tables/*.yaml --policy.Shipped------------+           tables.md
//	statemachines/*.yaml --statemachines.Default----+           lifecycles.md
//	rules/jobplugins/*.yaml --jobplugin.Default-----+           job-plugins.md
//	metrics that parts register --Gather------------+           metrics.md
//
// The files are in this folder, next to the documents that people write. `celsius docs docs` writes them again, and a test fails if they
// differ from what the code states. Except for the texts that introduce them, this package names no table, function or section.
package docs
