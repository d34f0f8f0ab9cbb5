package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// image is where a container image is: one domain, the nodes that have it. Its tally counts nobody; it tells
// the classes that ask for the image when another node has it, or the number of nodes changes.
func (p *peers) image(name string) *tally {
	if known := p.images[name]; known != nil {
		return known
	}
	where := &topology{rows: make([][]int32, 1)}
	for row := range p.rows {
		where.of = append(where.of, nowhere)
		if _, has := p.rows[row].images[name]; has {
			where.move(int32(row), 0)
		}
	}
	ta := &tally{where: where, filled: true}
	p.images[name] = ta
	return ta
}

// imagesOf follows the images of the node in a row.
func (p *peers) imagesOf(row int32, was, now map[string]int64) {
	if len(p.images) == 0 {
		return
	}
	follow := func(name string, to int32) {
		ta := p.images[name]
		if ta == nil || ta.where.of[row] == to {
			return
		}
		before := len(ta.where.rows[0])
		ta.where.move(row, to)
		ta.note(0)
		if before == 0 || len(ta.where.rows[0]) == 0 {
			p.version++ // tasks that ask for it are of another class now
		}
	}
	for name := range was {
		if _, has := now[name]; !has {
			follow(name, nowhere)
		}
	}
	for name := range now {
		follow(name, 0)
	}
}

// imagesFor lists the images of a task that some node has, each once.
func (p *peers) imagesFor(t *model.Task) (out []*tally, key string) {
	var names []string
	for _, name := range t.Images {
		if ta := p.image(name); len(ta.where.rows[0]) > 0 && !slices.Contains(out, ta) {
			out = append(out, ta)
		}
	}
	if out == nil {
		return nil, ""
	}
	for _, name := range t.Images {
		if len(p.image(name).where.rows[0]) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return out, strconv.Itoa(t.Containers) + " " + strings.Join(names, " ")
}

func imageFields() []*rules.Member {
	type v = *taskView
	return []*rules.Member{
		boolField("hasImages", rules.ByObject, "some node has an image of one of its containers", func(t v) bool {
			return len(t.w.company(t).images) > 0
		}),
		hidden("images", "known images", func(t v) ref.Val { return types.String(t.w.company(t).imagesKey) }),
	}
}

func imageFunctions() []*rules.Function {
	return []*rules.Function{
		natively(method("imageLocality", "How much of the pod's images the node has, 0 to 100: the sizes of those that it has, each scaled by the part of all nodes that have it, "+
			"between 23 MiB (0) and 1000 MiB a container (100): kube-scheduler's score ImageLocality.",
			[]*cel.Type{nodeType(), taskType()}, cel.DoubleType, func(args ...ref.Val) ref.Val {
				n, okN := args[0].(*nodeView)
				t, okT := args[1].(*taskView)
				if !okN || !okT {
					return wrongArgument(args[0])
				}
				return types.Double(imageLocality(n.of, t))
			}, "{1}.images", "{0}.imageNodes"), always(&rules.Native{Doubles: imageColumn})),
	}
}

// The bounds of the sum of sizes, in bytes, as kube-scheduler has them.
const (
	imagesFrom = 23 << 20
	imagesTo   = 1000 << 20 // a container
)

func imageLocality(n *model.Node, t *taskView) float64 {
	t.w.company(t) // brings the nodes' images up to date
	p, sum := &t.w.peers, int64(0)
	for _, name := range t.of.Images {
		size, has := n.Images[name]
		if !has {
			continue
		}
		spread := float64(len(p.image(name).where.rows[0])) / float64(p.total)
		sum += int64(float64(size) * spread)
	}
	most := int64(imagesTo) * int64(max(t.of.Containers, 1))
	sum = min(max(sum, imagesFrom), most)
	return float64(100 * (sum - imagesFrom) / (most - imagesFrom))
}

func imageColumn(r rules.Rows, args []rules.Source, rows []int32, out []float64) bool {
	t, ok := args[1].Value.(*taskView)
	if !ok || !args[0].Row {
		return false
	}
	n := &sessionOf(r).c.Nodes
	for i, row := range rows {
		out[i] = imageLocality(n.Rows[row], t)
	}
	return true
}
