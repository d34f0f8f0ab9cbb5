package openb

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Sizes of the picture, in pixels, and colours of the policies, in order. Readers who do not distinguish red and green can distinguish the
// colours.
const (
	pictureWidth  = 1040
	pictureHeight = 500
	plotTop       = 96.0
	plotHeight    = 340.0
	plotWidth     = 430.0
	zoomFrom      = 80 // percent of arrived load at which the right plot starts
)

func palette() []string {
	return []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}
}

// plot is one pair of axes.
type plot struct {
	left         float64 // the left edge of the plot area, in pixels
	x0, x1       float64 // percent of arrived load
	y0, y1       float64 // percent of all GPUs
	xStep, yStep float64
	title        string
}

func (p plot) x(v float64) float64 { return p.left + (v-p.x0)/(p.x1-p.x0)*plotWidth }
func (p plot) y(v float64) float64 { return plotTop + (p.y1-v)/(p.y1-p.y0)*plotHeight }

// WriteSVG draws the mean curve of each policy, with the published one dotted on top. The left plot shows the whole run, and the right plot
// its end, where policies differ. Equal input results in equal bytes.
func WriteSVG(w io.Writer, summaries []*Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12" `+
		`fill="#222">`+"\n",
		pictureWidth, pictureHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", pictureWidth, pictureHeight)
	fmt.Fprintf(&b, `<text x="60" y="30" font-size="17" font-weight="600">%s</text>`+"\n", html.EscapeString(title(summaries)))
	writeLegend(&b, summaries)
	whole := plot{left: 60, x0: 0, x1: Percents - 1, y0: 0, y1: 100, xStep: 10, yStep: 10, title: "the whole run"}
	for _, p := range []plot{whole, zoom(summaries)} {
		p.axes(&b)
		for i, s := range summaries {
			colour := palette()[i%len(palette())]
			p.curve(&b, s.Mean, `stroke="`+colour+`" stroke-width="1.8"`)
			if s.Published != nil {
				p.curve(&b, *s.Published, `stroke="#000" stroke-width="1.6" stroke-dasharray="1.5 4" stroke-linecap="round"`)
			}
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func title(summaries []*Summary) string {
	if len(summaries) == 0 {
		return "GPU allocation"
	}
	return fmt.Sprintf("GPU allocation, openb trace, workload %s, mean of %d runs", summaries[0].Workload, len(summaries[0].Results))
}

func writeLegend(b *strings.Builder, summaries []*Summary) {
	x := 60
	entry := func(style, text string) {
		fmt.Fprintf(b, `<path d="M%d 54h24" fill="none" %s/><text x="%d" y="58">%s</text>`+"\n", x, style, x+30, html.EscapeString(text))
		x += 46 + 7*len(text)
	}
	published := false
	for i, s := range summaries {
		entry(`stroke="`+palette()[i%len(palette())]+`" stroke-width="2.5"`, s.Heuristic.Name)
		published = published || s.Published != nil
	}
	if published {
		entry(`stroke="#000" stroke-width="1.6" stroke-dasharray="1.5 4" stroke-linecap="round"`, "published")
	}
}

// zoom returns a plot with the end of all curves.
func zoom(summaries []*Summary) plot {
	low, high := 100.0, 0.0
	for _, s := range summaries {
		for _, x := range s.Mean[zoomFrom:] {
			if !math.IsNaN(x) {
				low, high = min(low, x), max(high, x)
			}
		}
	}
	p := plot{left: 560, x0: zoomFrom, x1: Percents - 1, xStep: 5, yStep: 2, title: fmt.Sprintf("from %d %% on", zoomFrom)}
	p.y0, p.y1 = 2*math.Floor(low/2), min(100, 2*math.Ceil((high+0.5)/2))
	if p.y0 >= p.y1 {
		p.y0, p.y1 = 0, 100
	}
	if p.y1-p.y0 > 30 {
		p.yStep = 10
	}
	return p
}

// axes draws the frame, the grid, the numbers and the titles.
func (p plot) axes(b *strings.Builder) {
	for v := p.x0; v <= p.x1; v += p.xStep {
		fmt.Fprintf(b, `<path d="M%.1f %.1fv%.1f" stroke="#e4e4e4"/><text x="%.1f" y="%.1f" text-anchor="middle">%g</text>`+"\n",
			p.x(v), plotTop, plotHeight, p.x(v), plotTop+plotHeight+18, v)
	}
	for v := p.y0; v <= p.y1; v += p.yStep {
		fmt.Fprintf(b, `<path d="M%.1f %.1fh%.1f" stroke="#e4e4e4"/><text x="%.1f" y="%.1f" text-anchor="end">%g</text>`+"\n",
			p.left, p.y(v), plotWidth, p.left-8, p.y(v)+4, v)
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1fv%.1fh%.1f" fill="none" stroke="#444"/>`+"\n", p.left, plotTop, plotHeight, plotWidth)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="#666">%s</text>`+"\n", p.left, plotTop-10,
		html.EscapeString("allocated, % of all GPUs: "+p.title))
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" fill="#666">arrived load, %% of all GPUs</text>`+"\n",
		p.left+plotWidth/2, plotTop+plotHeight+40)
}

// curve draws the part of a curve inside the frame.
func (p plot) curve(b *strings.Builder, c Curve, style string) {
	var d strings.Builder
	pen := byte('M')
	for i := int(p.x0); i <= int(p.x1); i++ {
		if math.IsNaN(c[i]) || c[i] < p.y0 || c[i] > p.y1 {
			pen = 'M'
			continue
		}
		fmt.Fprintf(&d, "%c%.1f %.1f", pen, p.x(float64(i)), p.y(c[i]))
		pen = 'L'
	}
	if d.Len() > 0 {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke-linejoin="round" %s/>`+"\n", d.String(), style)
	}
}
