package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/pkg/api"
)

// listBlock is how many items of a list are held before they are written.
const listBlock = 100

// writeList writes every item of a list, at most the first size unless that is 0. It writes a
// block as soon as it has one, so that a long list is neither held nor waited for. An error
// after the first block leaves a list that is cut off; its text says so.
func writeList[V any](o *operator, w io.Writer, size int, columns []command.Column[V], items iter.Seq2[V, error]) error {
	out := newListWriter(w, o.output, columns)
	block, written := make([]V, 0, listBlock), 0
	for v, err := range items {
		if err != nil {
			if err = o.refusal(err); written > 0 {
				err = fmt.Errorf("the list ends after %d items: %w", written, err)
			}
			return err
		}
		block = append(block, v)
		if written+len(block) == size {
			break
		}
		if len(block) == listBlock {
			if err := out.write(block); err != nil {
				return command.Failed(err)
			}
			written, block = written+len(block), block[:0]
		}
	}
	if err := out.write(block); err != nil {
		return command.Failed(err)
	}
	return command.Failed(out.end())
}

// collect reads a list as a whole, or its first size items unless size is 0.
func collect[V any](o *operator, size int, list func(api.Page) (*api.List[V], error)) (*api.List[V], error) {
	all := &api.List[V]{Items: []V{}}
	for v, err := range api.Each(list) {
		if err != nil {
			return nil, o.refusal(err)
		}
		all.Items = append(all.Items, v)
		if len(all.Items) == size {
			break
		}
	}
	return all, nil
}

// listWriter writes the items of a list, block by block.
type listWriter[V any] interface {
	write(block []V) error
	end() error // after the last block
}

func newListWriter[V any](w io.Writer, form string, columns []command.Column[V]) listWriter[V] {
	switch form {
	case command.OutputJSON:
		return &jsonList[V]{w: w}
	case command.OutputYAML:
		return &yamlList[V]{w: w}
	default:
		return newTableList(w, form == command.OutputWide, columns)
	}
}

// jsonList writes a list as encoding/json does with two spaces.
type jsonList[V any] struct {
	w     io.Writer
	begun bool
}

func (l *jsonList[V]) write(block []V) error {
	for _, v := range block {
		between := ",\n    "
		if !l.begun {
			between = "{\n  \"items\": [\n    "
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetIndent("    ", "  ")
		if err := enc.Encode(v); err != nil {
			return err
		}
		l.begun = true
		if _, err := io.WriteString(l.w, between+strings.TrimSuffix(text.String(), "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (l *jsonList[V]) end() error {
	text := "\n  ]\n}\n"
	if !l.begun {
		text = "{\n  \"items\": []\n}\n"
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// yamlList writes a list as YAML.
type yamlList[V any] struct {
	w     io.Writer
	begun bool
}

func (l *yamlList[V]) write(block []V) error {
	if len(block) == 0 {
		return nil
	}
	var text bytes.Buffer
	if err := command.WriteYAML(&text, api.List[V]{Items: block}); err != nil {
		return err
	}
	rest := text.String()
	if l.begun {
		_, rest, _ = strings.Cut(rest, "\n") // the key
	}
	l.begun = true
	_, err := io.WriteString(l.w, rest)
	return err
}

func (l *yamlList[V]) end() error {
	if l.begun {
		return nil
	}
	_, err := io.WriteString(l.w, "items: []\n")
	return err
}

// tableList writes a table. A column is as wide as its widest cell so far.
type tableList[V any] struct {
	w       io.Writer
	columns []command.Column[V]
	widths  []int
	begun   bool
}

func newTableList[V any](w io.Writer, wide bool, columns []command.Column[V]) *tableList[V] {
	l := &tableList[V]{w: w}
	for _, c := range columns {
		if wide || !c.Wide {
			l.columns = append(l.columns, c)
		}
	}
	l.widths = make([]int, len(l.columns))
	return l
}

func (l *tableList[V]) write(block []V) error {
	rows := make([][]string, 0, len(block)+1)
	if !l.begun {
		titles := make([]string, len(l.columns))
		for i, c := range l.columns {
			titles[i] = c.Title
		}
		rows, l.begun = append(rows, titles), true
	}
	for _, v := range block {
		row := make([]string, len(l.columns))
		for i, c := range l.columns {
			row[i] = c.Value(v)
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		for i, cell := range row {
			l.widths[i] = max(l.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(l.line(row))
	}
	_, err := io.WriteString(l.w, text.String())
	return err
}

// line pads the cells of a row, up to the last that is not empty.
func (l *tableList[V]) line(row []string) string {
	for len(row) > 0 && row[len(row)-1] == "" {
		row = row[:len(row)-1]
	}
	var line strings.Builder
	for i, cell := range row {
		line.WriteString(cell)
		if i < len(row)-1 {
			line.WriteString(strings.Repeat(" ", l.widths[i]+2-utf8.RuneCountInString(cell)))
		}
	}
	line.WriteByte('\n')
	return line.String()
}

func (l *tableList[V]) end() error { return nil }
