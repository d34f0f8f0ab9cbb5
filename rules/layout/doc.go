// Package layout writes files of policies and tables in one form, whoever wrote them: the same indents, quotes and line ends, expressions
// with the same spaces, and long ones on several lines. Comments and blank lines stay, and so does all that the file says.
//
//	text --source.Nodes--> nodes with comments --writer--> text --check--> the same data, the same expressions, the same comments
//	                                             |
//	                                             +-- cel.go: expressions, which cel-go's parser reads before and after
package layout
