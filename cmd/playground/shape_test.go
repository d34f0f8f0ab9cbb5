package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestParseShapes(t *testing.T) {
	type node struct {
		Count  int
		CPU    string
		GPU    string
		Labels map[string]string
		Taints []corev1.Taint
	}
	none := map[string]string{}
	for _, c := range []struct {
		name  string
		texts []string
		nodes int // -1: --nodes is not given, so the default 5 applies
		want  []node
		err   string
	}{
		{name: "default", nodes: -1, want: []node{{5, "32", "8", none, nil}}},
		{name: "nodes", nodes: 2, want: []node{{2, "32", "8", none, nil}}},
		{name: "shape", texts: []string{"cpu=4"}, nodes: -1, want: []node{{5, "4", "0", none, nil}}},
		{
			name: "counts", texts: []string{"8x cpu=500m, nvidia.com/gpu=1", "memory=1Gi"}, nodes: 3,
			want: []node{{8, "500m", "1", none, nil}, {3, "32", "0", none, nil}},
		},
		{
			name: "labels and taints", texts: []string{"1 x label:topology.kubernetes.io/zone=a,label:spot,taint:gpu=yes:NoSchedule"}, nodes: -1,
			want: []node{{
				1, "32", "0",
				map[string]string{"topology.kubernetes.io/zone": "a", "spot": ""},
				[]corev1.Taint{{Key: "gpu", Value: "yes", Effect: "NoSchedule"}},
			}},
		},
		{
			name: "no use of nodes", texts: []string{"8x cpu=4"}, nodes: 3,
			err: "--nodes 3 says nothing: every --node-shape has a count of its own",
		},
		{
			name: "no nodes", texts: []string{"0x cpu=4"}, nodes: -1,
			err: `node shape "0x cpu=4": 0 nodes are no number of nodes from 1 on; write it as`,
		},
		{name: "many nodes", texts: []string{"99999999999999999999x cpu=4"}, nodes: -1, err: "99999999999999999999 nodes are no number"},
		{
			name: "no quantity", texts: []string{"cpu=four"}, nodes: -1,
			err: `"four" is no amount of cpu: give a quantity such as 500m, 32 or 256Gi`,
		},
		{name: "below zero", texts: []string{"cpu=-1"}, nodes: -1, err: `"-1" is no amount of cpu`},
		{name: "twice", texts: []string{"cpu=1,cpu=2"}, nodes: -1, err: "cpu is there twice"},
		{name: "no item", texts: []string{"cpu"}, nodes: -1, err: `"cpu" is no item`},
		{name: "nothing", texts: []string{""}, nodes: -1, err: `"" is no item`},
		{name: "count alone", texts: []string{"8x"}, nodes: -1, err: `"8x" is no item`},
		{name: "label", texts: []string{"label:a b=c"}, nodes: -1, err: `"label:a b=c" is no label`},
		{name: "taint", texts: []string{"taint:gpu=yes:Never"}, nodes: -1, err: `"gpu=yes:Never" is no taint`},
		{name: "resource", texts: []string{"a b=1"}, nodes: -1, err: `"a b" is no name of a resource`},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := c.nodes >= 0
			if !given {
				c.nodes = 5
			}
			shapes, err := parseShapes(c.texts, c.nodes, given)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got error %v, want %q in it", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []node
			for _, s := range shapes {
				gpus := s.allocatable["nvidia.com/gpu"]
				got = append(got, node{s.count, s.allocatable.Cpu().String(), gpus.String(), s.labels, s.taints})
				if s.allocatable.Pods().Value() != 110 {
					t.Errorf("room for %s pods, want 110", s.allocatable.Pods())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
