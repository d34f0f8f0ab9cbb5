// Package engine decides.
package engine
