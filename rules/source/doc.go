// Package source reads YAML and JSON so that every mistake is told at its place in the author's own file.
//
//	text --Parse--> Document --> Value (its line, its column and its path)
//	                               |  Fields, Items, String, Bool ...: what is of another form is an Issue
//	                               v
//	                             Text (which character of the file each character of a string is)
//
//	Issues: all mistakes at once, as file:line:column, with the line and a caret under the place
//
// It knows nothing of rules: lifecycles, admission and scenarios are read by it too.
package source
