package volcano

import (
	"fmt"
	"strings"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// metrics notes which flags the scheduler needs to read the same measured load as Volcano, because a policy does not contain them.
func (c *converter) metrics(conf source.Value) {
	if !conf.Exists() {
		return
	}
	var kind, address string
	flags := []string{}
	for _, f := range conf.Fields(nil, &c.issues) {
		text := strings.TrimSpace(fmt.Sprint(f.Value.Any()))
		switch f.Name {
		case "type":
			kind = text
		case "address":
			address = text
		case "interval":
			flags = append(flags, "--node-metrics-interval "+text)
		}
	}
	c.otherMetrics(conf, kind)
	const api = "the scheduler reads the measured load of nodes from the API metrics.k8s.io, which metrics-server serves"
	set := func(more ...string) string {
		if flags := append(more, flags...); len(flags) > 0 {
			return "start it with " + strings.Join(flags, " ")
		}
		return ""
	}
	switch kind {
	case "prometheus":
		if address == "" {
			address = "URL"
		}
		c.note(conf, "", set("--prometheus-url "+address),
			"metrics is a matter of how the scheduler is started: it asks Prometheus if it is told so")
	case "prometheus_adaptor", "prometheus_adapt":
		c.note(conf, "", set(),
			"metrics is a matter of how the scheduler is started: %s, or from Prometheus, if it is given --prometheus-url", api)
	case "elasticsearch":
		c.note(conf, "metrics: type", set(), "metrics: Elasticsearch is not asked; %s, or from Prometheus, if it is given --prometheus-url", api)
	default:
		c.note(conf, "", set(),
			"metrics: type %q is none that Volcano knows, which are prometheus, prometheus_adaptor and elasticsearch; %s", kind, api)
	}
}

// otherMetrics adds notes about the rest of the section.
func (c *converter) otherMetrics(conf source.Value, kind string) {
	for _, f := range conf.Fields(nil, &c.issues) {
		switch f.Name {
		case "type", "interval":
		case "address":
			if kind != "prometheus" {
				c.note(f.Key, "", "", "metrics: address has no effect: the API metrics.k8s.io is asked of the API server, which knows who serves it")
			}
		case "tls.insecureSkipVerify":
			if !turnsOff(f.Value) {
				c.note(f.Key, "metrics: "+f.Name, "give --prometheus-ca-file", "metrics: %s is dropped: no server is asked that cannot show who it is",
					f.Name)
			}
		default:
			if strings.HasPrefix(f.Name, "elasticsearch.") {
				c.note(f.Key, "", "", "metrics: %s has no effect: Elasticsearch is not asked", f.Name)
				continue
			}
			c.note(f.Key, "", "it takes type, address, interval, tls.insecureSkipVerify and elasticsearch.*",
				"metrics: %s has no effect: Volcano reads nothing of that name from it", f.Name)
		}
	}
}
