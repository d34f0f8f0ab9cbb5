package bench

import (
	"fmt"
	"testing"
)

func TestParseShapes(t *testing.T) {
	shapes, err := parseShapes([]string{"10000x1", "500x20", "20x500", "1x10000"}, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(shapes), "[1000x1 50x20 20x50 1x1000]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i, s := range shapes {
		if s.counted != (i == 1) {
			t.Errorf("%s: counted %t", s, s.counted)
		}
	}
	if got := shapes[1].all(); got != 1000 {
		t.Errorf("%d pods", got)
	}
	if tiny, err := parseShapes([]string{"3x2"}, 0.01); err != nil || tiny[0].String() != "1x2" {
		t.Errorf("scaled to nothing: %v, %v", tiny, err)
	}
}

func TestParseShapesRefuses(t *testing.T) {
	for _, given := range []string{"", "500", "500x", "x20", "0x1", "5x-1", "5x5x5", "many"} {
		if shapes, err := parseShapes([]string{given}, 1); err == nil {
			t.Errorf("%q: %v", given, shapes)
		}
	}
	if _, err := parseShapes(nil, 1); err == nil {
		t.Error("no shapes")
	}
	if _, err := parseShapes([]string{"5x5"}, 0); err == nil {
		t.Error("scale 0")
	}
}

func TestCheckPeers(t *testing.T) {
	if err := checkPeers([]string{"volcano=vc-scheduler --v=1", "other=sh -c 'a=b'"}); err != nil {
		t.Error(err)
	}
	for _, given := range [][]string{{"volcano"}, {"=command"}, {"volcano= "}, {"a=b", "a=c"}, {"kube-scheduler=x"}} {
		if err := checkPeers(given); err == nil {
			t.Errorf("%q is taken", given)
		}
	}
}
