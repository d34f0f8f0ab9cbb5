package topology

import (
	"slices"
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// image returns the tally of a container image. It has one domain: the nodes that have the image. The tally counts no tasks. It tells
// classes that use the image when another node has it, or the number of nodes changes.
func (p *Counts) image(name string) *Tally {
	if known := p.images[name]; known != nil {
		return known
	}
	where := &domains{rows: make([][]int32, 1)}
	for row := range p.rows {
		if _, has := p.rows[row].images[name]; has {
			where.move(int32(row), 0)
		}
	}
	ta := &Tally{where: where, filled: true}
	p.images[name] = ta
	return ta
}

// imagesOf updates the images of the node in a row.
func (p *Counts) imagesOf(row int32, was, now map[string]int64) {
	if len(p.images) == 0 {
		return
	}
	follow := func(name string, to int32) {
		ta := p.images[name]
		if ta == nil || ta.where.at(row) == to {
			return
		}
		before := len(ta.where.rows[0])
		ta.where.move(row, to)
		ta.note(0)
		if before == 0 || len(ta.where.rows[0]) == 0 {
			p.version++ // tasks that use it now belong to another class
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

// imagesFor lists the different images of a task that some node has.
func (p *Counts) imagesFor(t *model.Task) (out []*Tally, key string) {
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

// ImageNodes returns how many nodes have an image, and how many nodes there are.
func (p *Counts) ImageNodes(name string) (with, all int) {
	p.sync()
	return len(p.image(name).where.rows[0]), p.total
}
