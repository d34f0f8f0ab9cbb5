// Package volcano reads configurations of Volcano's scheduler and converts them. Parse and Read return a Conf. Convert returns the
// SchedulingPolicy that does the same, with notes about what it does not do. The package knows no table by name: the params of a table
// state which flags and arguments it takes.
package volcano
