package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// jobShape is so many Jobs of so many pods.
type jobShape struct {
	jobs, pods int
	counted    bool // calls a Job are those of this one
}

func (s jobShape) String() string { return fmt.Sprintf("%dx%d", s.jobs, s.pods) }

// all is how many pods it has.
func (s jobShape) all() int { return s.jobs * s.pods }

// parseShapes reads JOBSxPODS, and scales what there are more of, Jobs or pods of a Job: so 500x20 at 0.1 is 50x20. Calls are counted
// where there are more Jobs than pods of a Job, and more pods than one, in the first such shape: what Jobs of one pod cost has
// little to do with others, and what Jobs of thousands cost depends on how long their pods take to start.
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
