// Command celsius is the product in one binary; one file a verb. It wires, and
// decides nothing.
package main
