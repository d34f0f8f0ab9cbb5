// Package docs writes the reference of the rule language and of the lifecycles from what the compiler knows.
//
//	policy.Vocabulary, Sites, Roots, Verbs, Shape --+
//	rules.Libraries, Operators, keys of rows -------+--Files--> rule-language.md
//	rules/tables/*.yaml --policy.Shipped------------+           tables.md
//	statemachines/*.yaml --statemachines.Default----+           lifecycles.md
//
// The files lie in this folder, beside the documents that people write. `celsius docs docs` writes them anew, and a
// test fails where they are not what the code says. Nothing here knows a table, a function or a section by name but
// for the words that introduce them.
package docs
