package comparison

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The chart's measures, in pixels. Its colours are readable on white and on black, and
// modes differ by shape too.
const (
	chartWidth  = 760
	plotLeft    = 60
	plotRight   = 730
	plotTop     = 70
	rowHeight   = 34
	textColour  = "#737b85"
	gridOpacity = 0.3
)

// mark is how the points of a mode are drawn, as a path around the point.
type mark struct{ colour, path string }

func marks() []mark {
	return []mark{
		{"#d9534f", "m-6 -6h12v12h-12z"},                   // a square
		{"#c58a12", "m0 -7l7 12h-14z"},                     // a triangle
		{"#2f9e6b", "m-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0"}, // a disc
	}
}

// Chart draws how many writes a decision takes, by scenario and mode, on a logarithmic
// scale, as an SVG. Scenarios and modes are drawn in the order in which they come, at most
// three modes.
func Chart(points []Point) string {
	c := chart{low: 0, high: 0}
	for _, p := range points {
		if !slices.Contains(c.scenarios, p.Scenario) {
			c.scenarios = append(c.scenarios, p.Scenario)
		}
		if !slices.Contains(c.modes, p.Mode) {
			c.modes = append(c.modes, p.Mode)
		}
		c.low, c.high = min(c.low, int(math.Floor(math.Log10(p.Cost)))), max(c.high, int(math.Ceil(math.Log10(p.Cost))))
	}
	bottom := plotTop + rowHeight*len(c.scenarios)
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13" fill="%s" role="img" aria-labelledby="title">`, chartWidth, bottom+40, textColour)
	c.printf(`<title id="title">Writes a decision, by scenario and mode, on a logarithmic scale</title>`)
	c.legend()
	c.grid(bottom)
	for i, name := range c.scenarios {
		c.row(name, plotTop+rowHeight*i+rowHeight/2, points)
	}
	c.printf(`</svg>`)
	return c.String()
}

type chart struct {
	strings.Builder
	scenarios, modes []string
	low, high        int // powers of ten
}

func (c *chart) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c, format+"\n", args...) // a builder never fails
}

// x is where a cost stands.
func (c *chart) x(cost float64) float64 {
	return plotLeft + (plotRight-plotLeft)*(math.Log10(cost)-float64(c.low))/float64(max(c.high-c.low, 1))
}

func (c *chart) legend() {
	c.printf(`<text x="%d" y="20" font-size="15">Writes a decision (logarithmic; less is better)</text>`, plotLeft)
	for i, name := range c.modes {
		x := plotLeft + 6 + 200*i
		c.mark(i, float64(x), 42)
		c.printf(`<text x="%d" y="46">%s</text>`, x+14, html.EscapeString(name))
	}
}

// grid draws a line for every power of ten.
func (c *chart) grid(bottom int) {
	for power := c.low; power <= c.high; power++ {
		x := c.x(math.Pow10(power))
		c.printf(`<path d="M%.1f %dV%d" stroke="%s" opacity="%.1f"/>`, x, plotTop, bottom, textColour, gridOpacity)
		c.printf(`<text x="%.1f" y="%d" text-anchor="middle">%g</text>`, x, bottom+20, math.Pow10(power))
	}
}

// row draws the points of a scenario, and a line from the dearest to the cheapest.
func (c *chart) row(name string, y int, points []Point) {
	c.printf(`<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-16, y+5, html.EscapeString(name))
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		if p.Scenario == name {
			least, most = min(least, c.x(p.Cost)), max(most, c.x(p.Cost))
		}
	}
	c.printf(`<path d="M%.1f %dH%.1f" stroke="%s" opacity="%.1f" stroke-width="2"/>`, least, y, most, textColour, gridOpacity)
	for _, p := range points {
		if p.Scenario == name {
			c.mark(slices.Index(c.modes, p.Mode), c.x(p.Cost), float64(y))
		}
	}
}

func (c *chart) mark(mode int, x, y float64) {
	m := marks()[min(mode, len(marks())-1)]
	c.printf(`<path d="M%.1f %.1f%s" fill="%s"/>`, x, y, m.path, m.colour)
}
