package bench

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestTablesOfJobs(t *testing.T) {
	second := func(n int, of ...time.Duration) point {
		return point{time.Duration(n) * time.Second, usage{4 * time.Second, of}}
	}
	r := shapeResult{
		shape: jobShape{jobs: 10000, pods: 1},
		jobs: lives{
			until: [steps]point{
				bound: second(40), running: second(50), gone: second(100, 2*time.Second, time.Second),
			},
			made: waits{30 * time.Second}, bound: waits{31 * time.Second}, calls: requests{"post pods": 10000},
		},
		floor: lives{
			until: [steps]point{bound: second(20), running: second(40, time.Second)}, calls: requests{"post pods": 10000},
		},
	}
	for _, c := range []struct {
		table
		want string
	}{
		{
			tableOfShapes([]shapeResult{r}),
			"10000x1         40.0       50.0     100      250        200            500        250         0.500    0.800",
		},
		{
			tableOfCosts([]shapeResult{r}),
			"10000x1      30.0  30.0       31.0  31.0        0.200      0.100     0.400   0.100     0.400   1.00   1.00",
		},
	} {
		if !strings.Contains(c.String(), c.want) {
			t.Errorf("there is no\n%s\nin\n%s", c.want, c.table)
		}
		for line := range strings.Lines(c.String()) {
			if n := utf8.RuneCountInString(line); n > width+1 {
				t.Errorf("%d columns: %s", n, line)
			}
		}
	}
}
