package openb

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// WriteCSV writes one row per run, in the layout of the published file. The columns are workload, policy and seed, then one for each
// percent of arrived load. A column contains the allocated GPUs in percent of all.
func WriteCSV(w io.Writer, results []*Result) error {
	out := csv.NewWriter(w)
	header := []string{"workload", "sc_policy", "seed"}
	for b := range Percents {
		header = append(header, strconv.Itoa(b))
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, r := range results {
		row := []string{podListPrefix + r.Workload, r.Heuristic.Name, strconv.FormatInt(r.Seed, 10)}
		for _, x := range r.Curve {
			row = append(row, fmt.Sprintf("%.2f", x))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
