// Package seeds has the properties of a test binary that imports it draw from the seed $RAPID_SEED, as if -rapid.seed said so: what a run
// of all tests draws is then the same whenever the same is tested. Without the variable each run draws anew.
package seeds

import (
	"flag"
	"fmt"
	"os"

	_ "pgregory.net/rapid" // whose flag is set
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
