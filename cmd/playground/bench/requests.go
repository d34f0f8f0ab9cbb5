package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/metrics/legacyregistry"
)

// requests are how many there were, by verb and resource.
type requests map[string]float64

// servedRequests are those that the API server, which is in this process, has answered so far: everybody's, but for
// watches, leases and what is not about a resource.
func servedRequests() (requests, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("requests at the API server: %w", err)
	}
	out := requests{}
	for _, family := range families {
		if family.GetName() != "apiserver_request_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			label := map[string]string{}
			for _, l := range m.GetLabel() {
				label[l.GetName()] = l.GetValue()
			}
			verb, resource := strings.ToLower(label["verb"]), label["resource"]
			if verb == "watch" || resource == "" || resource == "leases" {
				continue
			}
			if sub := label["subresource"]; sub != "" {
				resource += "/" + sub
			}
			out[verb+" "+resource] += m.GetCounter().GetValue()
		}
	}
	return out, nil
}

// servedSince are those that the API server has answered since then.
func servedSince(before requests) (requests, error) {
	now, err := servedRequests()
	return now.since(before), err
}

// since leaves what was not there before.
func (r requests) since(before requests) requests {
	out := requests{}
	for kind, n := range r {
		if n -= before[kind]; n > 0 {
			out[kind] = n
		}
	}
	return out
}

// each is how many requests there were for one of so many pods, without the kinds that there are few of: what is asked for once.
func (r requests) each(pods int) string {
	var out []string
	rest := 0.0
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		if n := r[kind]; n*1000 >= float64(pods) {
			out = append(out, fmt.Sprintf("%s %.3f", kind, n/float64(pods)))
		} else {
			rest += n
		}
	}
	return strings.Join(append(out, fmt.Sprintf("others %.0f in all", rest)), ", ")
}
