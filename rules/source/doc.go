// Package source reads YAML and JSON so that every mistake is told at its place in the author's own file.
//
//	text --Parse--> Document --> Value (its line, its column and its path)
//	                               |  Fields, Items, String, Bool ...: what is of another form is an Issue
//	                               v
//	                             Text (which character of the file each character of a string is)
//
//	Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// Other programs read text as one of these, so that all of them read JSON as JSON:
//
//	ToJSON  the objects as JSON, for an API server; YAML is read as kubectl reads it
//	Nodes   the nodes with their comments, for a program that writes the file again
//	Parses  whether the text can be read
//
// It knows nothing of rules: lifecycles, admission and scenarios are read by it too.
package source
