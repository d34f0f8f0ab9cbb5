package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// jobShape is a number of Jobs, and the number of pods in each.
type jobShape struct {
	jobs, pods int
	counted    bool // the calls per Job are counted for this shape
}

func (s jobShape) String() string { return fmt.Sprintf("%dx%d", s.jobs, s.pods) }

// all returns the total number of pods.
func (s jobShape) all() int { return s.jobs * s.pods }

// parseShapes parses JOBSxPODS. It scales the larger of the two numbers: 500x20 with the scale 0.1 becomes 50x20. Calls are counted for the
// first shape with more Jobs than pods per Job, and with more than one pod. The calls of Jobs with one pod differ from the others. The
// calls of Jobs with thousands of pods depend on how long the pods take to start.
func parseShapes(given []string, scale float64) ([]jobShape, error) {
	if scale <= 0 {
		return nil, UsageError{fmt.Errorf("--scale %g: give more than 0", scale)}
	}
	var out []jobShape
	counted := false
	for _, text := range given {
		jobs, pods, _ := strings.Cut(text, "x")
		var s jobShape
		var err error
		if s.jobs, err = strconv.Atoi(jobs); err == nil {
			s.pods, err = strconv.Atoi(pods)
		}
		if err != nil || s.jobs < 1 || s.pods < 1 {
			return nil, UsageError{fmt.Errorf("--shapes %s: give JOBSxPODS, as 500x20", text)}
		}
		s.counted = !counted && s.pods > 1 && s.jobs > s.pods
		counted = counted || s.counted
		most := &s.jobs
		if s.pods > s.jobs {
			most = &s.pods
		}
		*most = max(int(float64(*most)*scale+0.5), 1)
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, UsageError{fmt.Errorf("--shapes: give JOBSxPODS, as 500x20")}
	}
	return out, nil
}
