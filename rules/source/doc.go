// Package source reads YAML and JSON so that every mistake is reported at its position in the author's own file.
//
//	text --Parse--> Document --> Value (its line, its column and its path)
//	                               |  Fields, Items, String, Bool ...: a value of another form is an Issue
//	                               v
//	                             Text (maps each character of a string to its place in the file)
//
//	Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// Other functions read text for other programs. All of them read JSON as JSON:
//
//	ToJSON  the objects as JSON, for an API server; YAML is read as kubectl reads it
//	Nodes   the nodes with their comments, for a program that writes the file again
//	Parses  whether the text can be read
//
// The package knows nothing about rules: lifecycles, admission and scenarios use it, too.
package source
