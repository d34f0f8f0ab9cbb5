package model

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	_ "github.com/celsius-scheduler/celsius/engine/seeds"
)

// edges are quantities that are difficult to count, in ascending order.
var edges = []string{
	"0", "1n", "1m", "999m", "1", "1001m", "4", "9007199254740991m", "9007199254740992m", "9007199254740993m", "9007199254740991",
	"9007199254740992", "9007199254740993",
	"1Ei", "7Ei", "9223372036854775807", "9223372036854775808", "1e16", "1e30", "1e300", "1e10000000", "1e2147483647",
}

func TestAmounts(t *testing.T) {
	const most = float64(Most)
	for _, test := range []struct {
		text         string
		milli, bytes float64
	}{
		{"0", 0, 0},
		{"1n", 1, 1},
		{"1m", 1, 1},
		{"1500m", 1500, 2},
		{"9007199254740991m", most - 1, 9007199254741},
		{"9007199254740992m", most, 9007199254741},
		{"9007199254740991", most, most - 1},
		{"9007199254740992", most, most},
		{"9007199254740993", most, most},
		{"18014398509481983", most, most},
		{"9223372036854775", most, most},
		{"9223372036854776", most, most},
		{"1e16", most, most},
		{"9223372036854775807", most, most},
		{"1Ei", most, most},
		{"1e300", most, most},
		{"1e10000000", most, most},
		{"1e2147483647", most, most},
		{"-1", -1000, -1},
		{"-1e16", -most, -most},
		{"-1e300", -most, -most},
	} {
		q := resource.MustParse(test.text)
		for _, name := range []string{"cpu", "pods", GPUResource, "example.com/x", "requests.cpu"} {
			d := NewDims()
			if got := d.Amount(d.Intern(name), q); got != test.milli {
				t.Errorf("%s of %s is %g thousandths, want %g", test.text, name, got, test.milli)
			}
		}
		for _, name := range []string{"memory", "ephemeral-storage", "hugepages-2Mi", "requests.storage"} {
			d := NewDims()
			if got := d.Amount(d.Intern(name), q); got != test.bytes {
				t.Errorf("%s of %s is %g bytes, want %g", test.text, name, got, test.bytes)
			}
		}
		if got := Bytes(q); float64(got) != test.bytes {
			t.Errorf("%s is %d bytes, want %g", test.text, got, test.bytes)
		}
	}
}

// TestAmountsTold checks that an amount in output is the amount that was read, and never overflows.
func TestAmountsTold(t *testing.T) {
	d := NewDims()
	for amount, want := range map[float64]string{
		Most - 1: "9007199254740991m", Most: "9007199254740992m", Most * 100: "900719925474099200m", Most * Most: "4611686018427387904m",
		math.Inf(1): "4611686018427387904m", -Most * Most: "-4611686018427387904m",
	} {
		if got := d.Quantity(CPU, amount).String(); got != want {
			t.Errorf("%g of cpu is told as %s, want %s", amount, got, want)
		}
	}
}

// TestSumsAreExact checks that sums of whole amounts of any size are exact: they depend only on the remaining amounts, in any order.
func TestSumsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.OneOf(rapid.Int64Range(0, Most), rapid.SampledFrom([]int64{0, 1, 2, Most - 1, Most, Most / 2, Most/2 + 1}))
		var sum, rest Resources
		var in []int64
		exact := big.NewInt(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(in) > 0 && rapid.Bool().Draw(t, "take") {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "which")
				sum.AddExactly(&rest, Memory, -float64(in[i]))
				exact.Sub(exact, big.NewInt(in[i]))
				in = append(in[:i], in[i+1:]...)
			} else {
				v := amount.Draw(t, "amount")
				sum.AddExactly(&rest, Memory, float64(v))
				exact.Add(exact, big.NewInt(v))
				in = append(in, v)
			}
			near, _ := new(big.Float).SetInt(exact).Float64()
			lacks := new(big.Int).Sub(exact, whole(near))
			if got := sum.Get(Memory); got != near || lacks.Cmp(whole(rest.Get(Memory))) != 0 {
				t.Fatalf("the sum of %v is %g and %g, want %s: %g and %s", in, got, rest.Get(Memory), exact, near, lacks)
			}
		}
		if len(in) == 0 && (sum.Get(Memory) != 0 || rest != nil) {
			t.Fatalf("nothing is %v and %v", sum, rest)
		}
	})
}

func whole(x float64) *big.Int {
	i, _ := big.NewFloat(x).Int(nil)
	return i
}

// TestNothingTooLargeFits checks that a request for more than a node has does not fit, whatever the numbers. A request for less than the
// largest amount fits a node that has more.
func TestNothingTooLargeFits(t *testing.T) {
	const dims = 4
	names := [dims]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "ephemeral-storage", "example.com/x"}
	for _, name := range names {
		for i, asks := range edges {
			for k, offers := range edges {
				c := NewCluster(Options{})
				c.Apply(upserts(node("n", fmt.Sprintf("pods=9 %s=%s", name, offers)), pod("p", fmt.Sprintf("%s=%s", name, asks)))...)
				fits := c.Nodes.FitsIdle(c.Tasks["a/p"].Request, c.Nodes.Index["n"])
				dim, _ := c.Dims.Find(string(name))
				countable := c.Dims.Amount(dim, resource.MustParse(asks)) < Most
				larger := c.Dims.Amount(dim, resource.MustParse(asks)) > c.Dims.Amount(dim, resource.MustParse(offers))
				if want := countable && !larger; fits != want || larger && i < k {
					t.Errorf("%s %s fits a node with %s: %t", name, asks, offers, fits)
				}
			}
		}
	}
}

// TestWildQuantitiesCostNothing checks that a pod with quantities of any size, in any field, is read quickly.
func TestWildQuantitiesCostNothing(t *testing.T) {
	const wild = "1e10000000"
	began := time.Now()
	c := NewCluster(Options{})
	for i, edit := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("cpu="+wild)) },
		func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list("cpu=" + wild + " memory=" + wild) },
		func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar("memory=" + wild)} },
		func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{container("memory=" + wild)} },
		func(p *corev1.Pod) { p.Spec.Overhead = list("memory=" + wild) },
		func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu=" + wild)} },
		func(p *corev1.Pod) {},
	} {
		p := pod(fmt.Sprintf("p%d", i), "cpu=1m memory=1", edit)
		p.Spec.Containers[0].Name = "main"
		if errs := c.Apply(upserts(p)...); len(errs) > 0 {
			t.Fatal(errs)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	if j := c.Jobs["~a/p0"]; j.Request.Get(CPU) != Most {
		t.Errorf("cpu of %s and a milli-core is %g", wild, j.Request.Get(CPU))
	}
}
