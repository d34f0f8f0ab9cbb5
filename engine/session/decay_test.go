package session

import "testing"

func TestDecayed(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"100.0.decayed(duration('48h'), duration('24h'))": "25",
		"40.0.decayed(duration('12h'), duration('24h'))":  "28.2843",
		"40.0.decayed(duration('-1h'), duration('24h'))":  "40",
		"0.0.decayed(duration('1h'), duration('1h'))":     "0",
	} {
		if got := asked(t, expression, aNode("n1", "cpu=1"), aPod("p", "cpu=1")); got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}
