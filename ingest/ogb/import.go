package ogb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Options say what to read and where to write.
type Options struct {
	// Dir is the folder that OGB's download unpacks to (ogbn_arxiv), with the text files in it.
	Dir string
	// Name is one of Names.
	Name string
	// Out is the folder of the files written; it is made if missing.
	Out string
	// Progress may be nil.
	Progress Progress
}

// Progress receives how far an import has come.
type Progress interface {
	// Stage begins a stage of total units, 0 if that is not known.
	Stage(name string, total int64)
	Add(n int64)
}

// Stats say what was written.
type Stats struct {
	Nodes, Edges       int64
	Train, Valid, Test int64
	// WithoutText counts nodes with neither title nor abstract; WithoutClass those without a label.
	WithoutText, WithoutClass int64
	// UnknownTexts counts texts of papers or products that are no node; BadTexts counts lines of text files that are
	// no text, and FirstBad says which the first one was.
	UnknownTexts, BadTexts int64
	FirstBad               string
}

// The files that Import writes into Options.Out.
const (
	NodesFile = "nodes.jsonl.zst"
	EdgesFile = "edges.jsonl.zst"
	SplitFile = "split.csv"
)

// dataset is how the download of a data set is laid out.
type dataset struct {
	split   string // folder below split
	mapping string // names of nodes, below mapping
	name    string // the field of a node's name in the output
	binary  bool   // raw/data.npz, not CSV
	texts   func(*importer) error
}

var datasets = map[string]dataset{
	"ogbn-arxiv":    {"time", "nodeidx2paperid.csv.gz", "paper_id", false, (*importer).arxivTexts},
	"ogbn-products": {"sales_ranking", "nodeidx2asin.csv.gz", "asin", false, (*importer).productTexts},
	"ogbn-papers100M": {"time", "nodeidx2paperid.csv.gz", "paper_id", true,
		(*importer).paperTexts},
}

// Names are the data sets that can be imported.
var Names = []string{"ogbn-arxiv", "ogbn-products", "ogbn-papers100M"}

// importer is one import.
type importer struct {
	Options
	dataset
	ctx   context.Context
	nodes int64
	texts *spill
	stats Stats
}

// Import reads a data set and writes its files. Each of them is there whole or not at all.
func Import(ctx context.Context, o Options) (stats Stats, err error) {
	d, ok := datasets[o.Name]
	if !ok {
		return stats, fmt.Errorf("data set %q: use %s", o.Name, strings.Join(Names, ", "))
	}
	if o.Progress == nil {
		o.Progress = discard{}
	}
	im := &importer{Options: o, dataset: d, ctx: ctx}
	if im.nodes, err = im.count("num-node-list.csv.gz", "num_nodes_list"); err != nil {
		return stats, err
	}
	if im.nodes > maxNodes {
		return stats, fmt.Errorf("%s: %d nodes are more than %d", o.Name, im.nodes, int64(maxNodes))
	}
	if err := os.MkdirAll(o.Out, 0o755); err != nil { //nolint:gosec // a folder like any other
		return stats, err
	}
	if im.texts, err = newSpill(o.Out, im.nodes); err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, im.texts.remove()) }()
	if err := d.texts(im); err != nil {
		return im.stats, err
	}
	for _, write := range []func() error{im.writeNodes, im.writeEdges, im.writeSplit} {
		if err := write(); err != nil {
			return im.stats, err
		}
	}
	return im.stats, nil
}

// maxNodes keeps a node's position within 32 bits.
const maxNodes = 1 << 31

// path returns the path of a file of the download.
func (im *importer) path(elements ...string) string {
	return filepath.Join(append([]string{im.Dir}, elements...)...)
}

// count reads a number of nodes or edges, of one graph.
func (im *importer) count(csv, array string) (int64, error) {
	var c column
	var err error
	if im.binary {
		c, err = openArray(im.path("raw", "data.npz"), array)
	} else {
		c, err = openColumn(im.path("raw", csv))
	}
	if err != nil {
		return 0, err
	}
	defer c.close() //nolint:errcheck // it is read
	n, known, err := value(c)
	if err == nil && (!known || n < 0) {
		err = c.fault("not a number of nodes or edges")
	}
	return n, err
}

// value returns the next value of a column that must have one.
func value(c column) (int64, bool, error) {
	v, known, err := c.next()
	if errors.Is(err, errEnd) {
		err = c.fault("%w", err)
	}
	return v, known, err
}

// node is a line of NodesFile.
type node struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Label   string `json:"label,omitempty"`
	Year    int64  `json:"year,omitempty"`
	PaperID string `json:"paper_id,omitempty"`
	ASIN    string `json:"asin,omitempty"`
}

func (im *importer) writeNodes() (err error) {
	im.Progress.Stage("write nodes", im.nodes)
	labels, err := im.perNode("node-label", "node-label.npz", "node_label")
	if err != nil {
		return err
	}
	defer labels.close() //nolint:errcheck // it is read
	years, err := im.perNode("node_year", "data.npz", "node_year")
	switch {
	case errors.Is(err, errMissing):
		years = none{}
	case err != nil:
		return err
	}
	defer years.close() //nolint:errcheck // it is read
	names, err := openNames(im.path("mapping", im.mapping))
	if err != nil {
		return err
	}
	defer names.close() //nolint:errcheck // it is read
	out, err := create(filepath.Join(im.Out, NodesFile))
	if err != nil {
		return err
	}
	defer func() { err = out.end(err) }()
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i := range im.nodes {
		if err := im.ctx.Err(); err != nil {
			return err
		}
		n, err := im.node(i, labels, years, names)
		if err != nil {
			return err
		}
		if err := lines.Encode(n); err != nil {
			return err
		}
		im.stats.Nodes++
		im.Progress.Add(1)
	}
	return nil
}

// node gathers node i, which is the next one of all files.
func (im *importer) node(i int64, labels, years column, names *names) (n node, err error) {
	n.ID = strconv.FormatInt(i, 10)
	if n.Text, err = im.texts.text(i); err != nil {
		return n, err
	}
	if n.Text == "" {
		im.stats.WithoutText++
	}
	label, known, err := value(labels)
	if err != nil {
		return n, err
	}
	if known {
		n.Label = strconv.FormatInt(label, 10)
	} else {
		im.stats.WithoutClass++
	}
	if n.Year, _, err = value(years); err != nil {
		return n, err
	}
	name, err := names.next(i)
	if im.name == "asin" {
		n.ASIN = name
	} else {
		n.PaperID = name
	}
	return n, err
}

// perNode opens a value per node: a CSV file in raw, or an array of an npz file there.
func (im *importer) perNode(csv, file, array string) (column, error) {
	if im.binary {
		return openArray(im.path("raw", file), array)
	}
	return openColumn(im.path("raw", csv+".csv.gz"))
}

func (im *importer) writeEdges() (err error) {
	edges, total, err := im.openEdges()
	if err != nil {
		return err
	}
	defer edges.close() //nolint:errcheck // it is read
	im.Progress.Stage("write edges", total)
	out, err := create(filepath.Join(im.Out, EdgesFile))
	if err != nil {
		return err
	}
	defer func() { err = out.end(err) }()
	var line []byte
	for {
		if im.stats.Edges&0xffff == 0 && im.ctx.Err() != nil {
			return im.ctx.Err()
		}
		src, dst, more, err := edges.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		for _, end := range []int64{src, dst} {
			if end < 0 || end >= im.nodes {
				return edges.fault("node %d: there are %d nodes, from 0", end, im.nodes)
			}
		}
		line = append(line[:0], `{"src":"`...)
		line = strconv.AppendInt(line, src, 10)
		line = append(line, `","dst":"`...)
		line = strconv.AppendInt(line, dst, 10)
		line = append(line, "\"}\n"...)
		if _, err := out.Write(line); err != nil {
			return err
		}
		im.stats.Edges++
		im.Progress.Add(1)
	}
	if total > 0 && im.stats.Edges != total {
		return edges.fault("%d edges, and there should be %d: is the download complete?", im.stats.Edges, total)
	}
	return nil
}

func (im *importer) openEdges() (edgeReader, int64, error) {
	if im.binary {
		return openEdgeIndex(im.path("raw", "data.npz"))
	}
	total, err := im.count("num-edge-list.csv.gz", "")
	if err != nil {
		return nil, 0, err
	}
	e, err := openEdgeLines(im.path("raw", "edge.csv.gz"))
	return e, total, err
}

func (im *importer) writeSplit() (err error) {
	out, err := create(filepath.Join(im.Out, SplitFile))
	if err != nil {
		return err
	}
	defer func() { err = out.end(err) }()
	if _, err := out.Write([]byte("id,split\n")); err != nil {
		return err
	}
	for _, p := range []struct {
		name  string
		count *int64
	}{{"train", &im.stats.Train}, {"valid", &im.stats.Valid}, {"test", &im.stats.Test}} {
		if err := im.writePart(out, p.name, p.count); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) writePart(out *file, part string, count *int64) error {
	c, err := openColumn(im.path("split", im.split, part+".csv.gz"))
	if err != nil {
		return err
	}
	defer c.close() //nolint:errcheck // it is read
	for {
		i, known, err := c.next()
		switch {
		case errors.Is(err, errEnd):
			return nil
		case err != nil:
			return err
		case !known || i < 0 || i >= im.nodes:
			return c.fault("no node of %d", im.nodes)
		}
		if _, err := fmt.Fprintf(out, "%d,%s\n", i, part); err != nil {
			return err
		}
		*count++
	}
}

type discard struct{}

func (discard) Stage(string, int64) {}
func (discard) Add(int64)           {}
