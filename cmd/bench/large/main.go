// Command large writes several disjoint copies of a graph as one graph, to see how a pipeline does
// on inputs larger than the data at hand:
//
//	go run ./cmd/bench/large -data DIR -copies 10 -out big
//
// DIR holds nodes.jsonl.gz (id, text, label) and edges.jsonl.gz (src, dst). In copy k, every id and
// the first word of every text carry the number k. So neither nodes nor texts repeat, and the
// vocabulary grows with the copies. Copy 0 is the graph as it is.
//
// With -items N it draws a shop instead, products.csv and orders.csv (see shop.go):
//
//	go run ./cmd/bench/large -items 1000000 -out shop
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/internal/graphdir"
)

type node struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	Label string `json:"label,omitempty"`
}

type edge struct {
	Src string `json:"src"`
	Dst string `json:"dst"`
}

func main() {
	data := flag.String("data", "../shared/data/debian-packages", "folder of the graph")
	copies := flag.Int("copies", 10, "how many copies to write")
	items := flag.Int("items", 0, "draw a shop of this many items instead, with 1.2 orders for each")
	out := flag.String("out", "big", "folder to write to")
	flag.Parse()
	err := os.MkdirAll(*out, 0o755)
	switch {
	case err != nil:
	case *items > 0:
		err = writeShop(*out, *items)
	default:
		err = errors.Join(
			repeat(*data, *out, "nodes.jsonl.gz", *copies, func(n node, k int) node {
				return node{number(n.ID, k), numberFirstWord(n.Text, k), n.Label}
			}),
			repeat(*data, *out, "edges.jsonl.gz", *copies, func(e edge, k int) edge {
				return edge{number(e.Src, k), number(e.Dst, k)}
			}))
	}
	stage.Exit("large", err)
}

// repeat writes copies of a file's records, each changed by alter.
func repeat[T any](from, to, name string, copies int, alter func(T, int) T) (err error) {
	f, err := os.Create(filepath.Join(to, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := json.NewEncoder(zip)
	w.SetEscapeHTML(false)
	for k := range copies {
		for v, err := range graphdir.Lines[T](filepath.Join(from, name)) {
			if err != nil {
				return err
			}
			if err := w.Encode(alter(v, k)); err != nil {
				return err
			}
		}
	}
	return zip.Close()
}

// number marks an id as copy k's.
func number(id string, k int) string {
	if k == 0 {
		return id
	}
	return fmt.Sprintf("%s~%d", id, k)
}

// numberFirstWord marks the first word of a text as copy k's: "linux" becomes "linux3".
func numberFirstWord(text string, k int) string {
	if k == 0 {
		return text
	}
	end := strings.IndexAny(text+" ", " \n")
	return fmt.Sprintf("%s%d%s", text[:end], k, text[end:])
}
