// Package volcano reads configurations of Volcano's scheduler and converts them: Parse and Read give a
// Conf, Convert the SchedulingPolicy that does the same, with notes on what it does not do. It knows
// no table by name: which flags and arguments a table takes, its params say.
package volcano
