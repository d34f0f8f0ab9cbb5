package page

import _ "embed" // the files

//go:embed style.css
var style string

//go:embed components.js
var components string

// Style returns the style sheet.
func Style() string { return style }

// Components returns the script that defines the object celsius, with a function for each component.
func Components() string { return components }
