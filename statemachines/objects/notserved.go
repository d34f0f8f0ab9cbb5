package objects

import (
	"fmt"
	"strings"
	"time"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// TakenWithin is how long controllers may take to write the first status of a new Job before a delay is reported.
const TakenWithin = 10 * time.Second

// NotServed states that a Job names a scheduler that is not one of ours, and which of ours was probably meant. near is "" if the name is
// not similar to any of them.
func NotServed(name string, ours []string) (why, near string) {
	meant := ""
	if near = source.Nearest(name, ours); near != "" {
		meant = ": did you mean " + near + "?"
	}
	return fmt.Sprintf("its spec.schedulerName is %q%s; Celsius serves %s", name, meant, strings.Join(ours, " and ")), near
}
