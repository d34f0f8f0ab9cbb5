// Package docs writes the reference of the rule language, of the lifecycles and of the metrics from what the compiler knows.
//
//	policy.Vocabulary, Sites, Roots, Verbs, Shape --+
//	rules.Libraries, Operators, keys of rows -------+--Files--> rule-language.md
//	rules/tables/*.yaml --policy.Shipped------------+           tables.md
//	statemachines/*.yaml --statemachines.Default----+           lifecycles.md
//	rules/jobplugins/*.yaml --jobplugin.Default-----+           job-plugins.md
//	metrics that parts register --Gather------------+           metrics.md
//
// The files lie in this folder, beside the documents that people write. `celsius docs docs` writes them anew, and a
// test fails where they are not what the code says. Nothing here knows a table, a function or a section by name but
// for the words that introduce them.
package docs
