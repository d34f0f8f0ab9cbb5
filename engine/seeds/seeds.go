// Package seeds makes the property tests of a test binary use the seed $RAPID_SEED, as the flag -rapid.seed does. Two runs of the same
// tests then draw the same values. Without the variable, each run draws other values.
package seeds

import (
	"flag"
	"fmt"
	"os"

	_ "pgregory.net/rapid" // its flag is set
)

var _ = fromEnvironment()

func fromEnvironment() string {
	seed := os.Getenv("RAPID_SEED")
	if seed == "" {
		return ""
	}
	if err := flag.Set("rapid.seed", seed); err != nil {
		panic(fmt.Sprintf("RAPID_SEED is %q: %v", seed, err))
	}
	return seed
}
