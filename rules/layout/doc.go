// Package layout formats files of policies and tables in one uniform form: the same indents, quotes and line ends, expressions with the
// same spaces, and long expressions on several lines. Comments, blank lines and all content stay.
//
//	text --source.Nodes--> nodes with comments --writer--> text --check--> the same data, the same expressions, the same comments
//	                                             |
//	                                             +-- cel.go: expressions, which cel-go's parser reads before and after
package layout
